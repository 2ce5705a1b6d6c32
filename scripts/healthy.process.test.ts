import { execFile } from "node:child_process";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProcessName, processNames } from "../processes/names.ts";
import { freePorts } from "../test/harness/mongod.ts";
import { type Petstore, startPetstore } from "../test/harness/petstore.ts";

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore.stop());

/** Becomes what the health check of one process's container says, and how it ends. On a busy machine a look may fail. */
const health = (name: ProcessName, env: Record<string, string> = {}) =>
  expect.poll(() => look(name, env), { timeout: 60_000 });

async function look(name: ProcessName, env: Record<string, string>) {
  const { port } = new URL(petstore.url(name));
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; said: string }>();
  execFile(process.execPath, ["scripts/healthy.ts"], { env: { PORT: port, ...env } }, (error, said) =>
    resolve({ code: error?.code ?? 0, said }),
  );
  return promise;
}

test.each(processNames)("%s is healthy", (name) => health(name).toMatchObject({ code: 0 }));

test("the gateway is while a service is gone, and says which", async () => {
  await petstore.kill("pet");
  await health("gateway").toEqual({ code: 0, said: '{"status":"ready","failing":["pet"]}\n' });
  await health("pet").toMatchObject({ code: 1, said: expect.stringContaining("ECONNREFUSED") });
  await health("category").toMatchObject({ code: 0 });
  await petstore.start("pet");
});

test("one that does not answer is not", async () => {
  await petstore.kill("order", "SIGSTOP");
  await health("order").toMatchObject({ code: 1, said: expect.stringContaining("timeout") });
  await petstore.kill("order", "SIGCONT");
});

test("the launcher's is found, though the image names a port for processes that run alone", async () => {
  const { port } = new URL(petstore.url("gateway"));
  const [taken] = await freePorts(1);
  await health("gateway", { PORT: `${taken}`, PORT_BASE: port }).toMatchObject({ code: 0 });
});

test("the launcher's is asked, also where one of its services has the port of the image", async () => {
  const [gateway, pet] = (["gateway", "pet"] as const).map((name) => new URL(petstore.url(name)).port);
  await health("gateway", { PORT: `${pet}`, PORT_BASE: `${gateway}` }).toMatchObject({
    said: expect.stringContaining('"ready"'),
  });
});

test("the gateway is found under its base path", async () => {
  await petstore.kill("gateway");
  await petstore.start("gateway", { HTTP_BASE_PATH: "/api" });
  await health("gateway", { HTTP_BASE_PATH: "/api" }).toMatchObject({ code: 0 });
  await health("gateway").toMatchObject({ code: 1 });
});

test("one that listens on an address alone is asked there", async () => {
  await petstore.kill("gateway");
  const [host] = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter((one) => one.family === "IPv4" && !one.internal);
  const HOST = host?.address ?? "127.0.0.2";
  await petstore.start("gateway", { HOST, ALLOWED_HOSTS: "shop.example", ALLOW_UNAUTHENTICATED: "beyond-loopback" });
  await health("gateway", { HOST }).toMatchObject({ code: 0 });
  await health("gateway", { HOST: "0.0.0.0" }).toMatchObject({ code: 1 });
});
