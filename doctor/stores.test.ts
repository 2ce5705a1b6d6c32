/** The secret by which services know the doctor. */
import crypto from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { directoryForEach } from "../packages/store/fixtures/directory.ts";
import { openProof, secretFile } from "../services/proof.ts";
import { inspectLive } from "./stores.ts";

const directory = directoryForEach();
const names = () => readdirSync(directory.path);

test("only its owner can read it, as long as it is needed", () => {
  {
    using _ = openProof(directory.path);
    const [name = ""] = names();
    expect(statSync(join(directory.path, name)).mode & 0o777).toBe(0o600);
  }
  expect(names()).toEqual([]);
});

test("a link that waits for it is not followed", () => {
  const target = join(directory.path, "target");
  writeFileSync(target, "mine");
  symlinkSync(target, secretFile(directory.path, 12));
  using _ = vi.spyOn(crypto as { randomInt(max: number): number }, "randomInt").mockReturnValue(12);
  syncBuiltinESMExports();
  expect(() => openProof(directory.path)).toThrow("EEXIST");
  expect(readFileSync(target, "utf8")).toBe("mine");
});

test("a service that can't read what it has is not taken for one that is not there", async () => {
  using proof = openProof(directory.path);
  const server = createServer((_, response) => response.writeHead(500).end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(inspectLive("pet", [url], proof)).rejects.toThrow("pet could not read what it has stored");
  server.close();
});
