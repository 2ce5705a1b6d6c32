/** The disk of the embedded store is full: writes are refused with 503, reads go on, and nothing answered is lost. */
import { statfsSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { serviceNames } from "../../processes/names.ts";
import { sendHttp } from "../api/cases/endpoints.ts";
import { startPetstore } from "../harness/petstore.ts";
import { mountSmallDisk, smallDiskMissing } from "../harness/small-disk.ts";

test.skipIf(smallDiskMissing)(
  "writes are 503 until there is room, reads are 200, nothing is lost",
  { timeout: 300_000 },
  async () => {
    await using disk = await mountSmallDisk(4);
    await using petstore = await startPetstore({ dataDir: join(disk.dir, "data") });
    const send = (method: string, path: string, body?: object, headers = {}) =>
      sendHttp(petstore.http, { method, path, body, headers });
    let looks = 0;
    /** All that Category has logged so far: a line comes some time after the answer, and those before it have come, too. */
    const logged = async () => {
      const id = `look-${++looks}`;
      await send("GET", "/categories/1", undefined, { "x-request-id": id });
      await expect.poll(() => petstore.logs("category")).toContain(`"${id}"`);
      return petstore.logs("category");
    };
    const create = async (i: number) => {
      const { status, headers, text } = await send("POST", "/categories", { name: `category ${i}` });
      if (status === 503) {
        const { code, message } = JSON.parse(text);
        expect([headers["retry-after"], code]).toEqual(["1", "UNAVAILABLE"]);
        expect(message).toMatch(/^The store's disk is full/);
      } else expect(status).toBe(201);
      return status === 201 ? (JSON.parse(text).id as number) : undefined;
    };
    const created: number[] = [];
    for (let i = 0; i < 5; i++) created.push((await create(i)) ?? expect.unreachable());

    const { bavail, bsize } = statfsSync(disk.dir);
    writeFileSync(join(disk.dir, "filler"), Buffer.alloc(bavail * bsize));
    // The last page of a file may still have room.
    let refused = 0;
    for (let i = 5; refused < 10; i++) {
      const id = await create(i);
      if (id === undefined) refused++;
      else created.push(id);
    }
    for (const id of created) expect((await send("GET", `/categories/${id}`)).status).toBe(200);
    expect((await send("GET", "/categories?limit=100")).status).toBe(200);
    expect((await send("GET", "/readyz")).text).toContain('"failing":[]');
    // Once for each time that it was full: a small write may still have found room in between.
    const log = await logged();
    const times = (what: RegExp) => log.match(what)?.length ?? 0;
    expect(times(/the disk is full/g) - times(/there is room again/g)).toBe(1);
    expect(times(/the disk is full/g)).toBeLessThan(refused);

    await rm(join(disk.dir, "filler"));
    created.push((await create(-1)) ?? expect.unreachable());
    expect((await logged()).slice(log.length)).toContain("there is room again");
    for (const name of serviceNames) {
      await petstore.kill(name);
      await petstore.start(name);
    }
    const { text } = await send("GET", "/categories?limit=100");
    expect(JSON.parse(text).map(({ id }: { id: number }) => id)).toEqual(created.toReversed());
  },
);
