/** The command beside a petstore: under load nothing is found, damage is named while it runs, and what a kill left is mended. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import { mongodbMissing, openPlace } from "../test/harness/mongodb.ts";
import { type Petstore, startPetstore } from "../test/harness/petstore.ts";
import { keepBusy } from "../test/workload/busy.ts";
import { inFile } from "./fixtures/damage.ts";

const timeout = 120_000;
const services = ["pet", "category", "order", "inventory"] as const;
let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
}, timeout);

/** Without ADMIN_PORT each process has its own above its port. */
const start = async (mongodbUri?: string, env: Record<string, string> = {}) =>
  stack.use(await startPetstore({ env: { ADMIN_PORT: "", ...env }, ...(mongodbUri && { mongodbUri }), replicas: 1 }));

/** Runs the command as somebody on call does. */
function begin({ http, store }: Petstore, ...args: string[]) {
  const { dataDir, mongodbUri = "" } = store;
  const env = { PATH: process.env.PATH, DATA_DIR: dataDir, MONGODB_URI: mongodbUri, PORT_BASE: new URL(http).port };
  return promisify(execFile)(process.execPath, ["doctor/main.ts", "--json", ...args], { env });
}
async function doctor(petstore: Petstore, ...args: string[]) {
  const run = begin(petstore, ...args);
  const { stdout, stderr, code = 0 } = await run.catch((error) => error);
  return { code, stderr, findings: stdout === "" ? undefined : JSON.parse(stdout).findings };
}
const nothing = { code: 0, findings: [] };

function beginLoad({ http }: Petstore) {
  const stop = new AbortController();
  let answers = 0;
  const done = keepBusy(http, stop.signal, () => void answers++);
  stack.defer(() => stop.abort());
  return {
    /** Once more requests than that were answered. */
    answered: (count: number) => expect.poll(() => answers, { timeout: 60_000 }).toBeGreaterThan(count),
    end() {
      stop.abort();
      return done;
    },
  };
}

describe("on the embedded store", () => {
  test("under load nothing is found, and nothing is repaired", { timeout }, async () => {
    const petstore = await start();
    const load = beginLoad(petstore);
    expect(await doctor(petstore)).toMatchObject(nothing);
    expect(await doctor(petstore, "--repair")).toMatchObject({
      code: 2,
      stderr: "The petstore runs: stop it, then repair.\n",
    });
    expect(await doctor(petstore)).toMatchObject(nothing);
    expect(await load.end()).toBeGreaterThan(50);
  });

  test("damage is named while the petstore runs", { timeout }, async () => {
    const petstore = await start();
    const ask = (path: string, body: object) =>
      fetch(petstore.http + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    await ask("/categories", { name: "dogs" });
    await ask("/pets", { name: "Rex", categoryId: 1 });
    await ask("/pets", { name: "Tom", categoryId: 1 });
    await Promise.all(services.map((name) => petstore.kill(name, "SIGTERM")));
    const isFirst = ({ _id }: { _id: number }) => _id === 1;
    await inFile(petstore.store, "inventory", ({ change }) =>
      change("inventory", isFirst, (doc) => ({ ...doc, received: 9 })),
    );
    await inFile(petstore.store, "pet", ({ change }) =>
      change(
        "pets",
        ({ _id }) => _id === 2,
        ({ state: _, ...doc }) => doc,
      ),
    );
    const { port } = new URL(petstore.http);
    await Promise.all(services.map((name) => petstore.start(name, { PORT_BASE: port })));
    const { code, findings } = await doctor(petstore);
    expect({ code, findings }).toEqual({
      code: 1,
      findings: [
        {
          invariant: "stock-sum",
          ids: ["inventory/1"],
          detail: "Of 9 units received, 1 are in stock, 0 reserved for 0 orders, and 0 sold; 0 orders hold 0.",
          repair: "manual",
        },
        { invariant: "corrupt-document", ids: ["pet/2"], detail: expect.stringContaining("(state)"), repair: "manual" },
      ],
    });
    const metrics = async () => (await fetch(`http://127.0.0.1:${Number(port) + 104}/metrics`)).text();
    const figure = (name: string, count: number) => `petstore_invariant_violations{invariant="${name}"} ${count}\n`;
    await expect.poll(metrics, { timeout: 60_000, interval: 500 }).toContain(figure("stock-sum", 1));
    expect(await metrics()).toContain(figure("corrupt-document", 1));
    expect(await metrics()).toContain(figure("status-stale", 0));
    const secrets = () => readdirSync(petstore.store.dataDir).filter((name) => name.endsWith(".secret"));
    const stopped = begin(petstore);
    await expect.poll(secrets).toHaveLength(1);
    stopped.child.kill("SIGTERM");
    await expect(stopped).rejects.toMatchObject({ code: 143 });
    expect(secrets()).toEqual([]);
  });

  test("what a kill under load left is named, mended, and gone", { timeout }, async () => {
    const petstore = await start();
    const load = beginLoad(petstore);
    await load.answered(10);
    await expect.poll(async () => (await fetch(`${petstore.http}/store/orders`)).json()).not.toEqual([]);
    await Promise.all((["gateway", ...services] as const).map((name) => petstore.kill(name, "SIGKILL")));
    await load.end();
    const found = await doctor(petstore);
    expect(found.findings.filter(({ repair }: { repair: string }) => repair !== "safe")).toEqual([]);
    const { code, findings } = await doctor(petstore, "--repair");
    expect({ code, findings }).toEqual({ code: 0, findings: [] });
    for (const name of ["gateway", ...services] as const) await petstore.start(name);
    expect(await doctor(petstore)).toMatchObject(nothing);
  });

  test("without admin ports it can't look, and says so", { timeout }, async () => {
    const petstore = await start(undefined, { ADMIN_PORT: "off" });
    const { code, stderr, findings } = await doctor(petstore);
    expect({ code, findings }).toEqual({ code: 2, findings: undefined });
    expect(stderr).toContain("shows nothing at its admin port");
  });
});

describe.skipIf(mongodbMissing)("on MongoDB", () => {
  test("under load nothing is found, and nothing is repaired", { timeout }, async () => {
    const petstore = await start(stack.use(await openPlace()).uri);
    const load = beginLoad(petstore);
    expect(await doctor(petstore)).toMatchObject(nothing);
    expect(await doctor(petstore, "--repair")).toMatchObject({
      code: 2,
      stderr: "The petstore runs: stop it, then repair.\n",
    });
    expect(await load.end()).toBeGreaterThan(50);
  });

  test("what a kill under load left is named, mended, and gone", { timeout }, async () => {
    const petstore = await start(stack.use(await openPlace()).uri);
    const load = beginLoad(petstore);
    await load.answered(10);
    await expect.poll(async () => (await fetch(`${petstore.http}/store/orders`)).json()).not.toEqual([]);
    await Promise.all((["gateway", ...services] as const).map((name) => petstore.kill(name, "SIGKILL")));
    await load.end();
    const { code, findings } = await doctor(petstore, "--repair");
    expect({ code, findings }).toEqual({ code: 0, findings: [] });
  });
});

test("what it can't do is said in one line, with what to do", async () => {
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ["doctor/main.ts", ...args], {
      env: { PATH: process.env.PATH, DATA_DIR: "/nowhere" },
    }).catch((error) => error);
  expect(await run()).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^There is no petstore in \/nowhere: set DATA_DIR .*\n$/),
  });
  expect(await run("--mend")).toMatchObject({ code: 2, stderr: expect.stringContaining("Unknown option '--mend'") });
  expect(await run("--dry-run")).toMatchObject({ code: 2, stderr: expect.stringContaining("--repair") });
  expect((await run("--help")).stdout).toContain("ends with 0 if nothing is found");
});
