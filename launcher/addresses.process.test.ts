/** `HOST` in every notation: the petstore serves there, and answers to whoever calls it by an IPv6 address. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, expect, test } from "vitest";
import { ListPetsRequestSchema, ListPetsResponseSchema, PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { hasIpv6 } from "../packages/rpc/fixtures/ipv6.ts";
import { run } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";

const timeout = 120_000;

const dir = await mkdtemp(join(tmpdir(), "addresses-"));
afterAll(() => rm(dir, { recursive: true }));

/** Lists pets with gRPC's own client. */
async function listByGrpcJs(target: string): Promise<number> {
  const client = new Client(target, credentials.createInsecure());
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  client.makeUnaryRequest(
    `/${PetService.typeName}/ListPets`,
    (request: Uint8Array) => Buffer.from(request),
    (bytes) => fromBinary(ListPetsResponseSchema, bytes),
    toBinary(ListPetsRequestSchema, create(ListPetsRequestSchema)),
    { deadline: Date.now() + 20_000 },
    (error, answer) => (answer ? resolve(answer.pets.length) : reject(error)),
  );
  return promise.finally(() => client.close());
}

const curl = async (...args: readonly string[]) =>
  (await promisify(execFile)("curl", ["-sS", "--globoff", "--max-time", "20", ...args])).stdout;
const status = ["-o", "/dev/null", "-w", "%{http_code}"];
/** Becomes the answer to a create, which is sent again where a service was too slow to answer another. */
const created = (url: string, body: string) =>
  expect.poll(() => curl(...status, url, "--json", body, "-H", `idempotency-key: ${encodeURIComponent(url)}`));

test.skipIf(!hasIpv6).each([
  ["::1", "[::1]", ["[::1]"]],
  ["0:0:0:0:0:0:0:1", "[0:0:0:0:0:0:0:1]", ["[::1]"]],
  ["::ffff:127.0.0.1", "[::ffff:127.0.0.1]", ["[::ffff:127.0.0.1]", "127.0.0.1"]],
  ["::", "127.0.0.1", ["[::1]", "127.0.0.1"]],
  ["0::0", "127.0.0.1", ["[::1]", "127.0.0.1"]],
])("HOST=%s serves every kind of caller", { timeout }, async (host, shown, names) => {
  const base = await freePorts();
  const env = {
    HOST: host,
    PORT_BASE: `${base}`,
    DATA_DIR: join(dir, host.replaceAll(":", "-")),
    PATH: process.env.PATH ?? "",
    ALLOW_UNAUTHENTICATED: "beyond-loopback",
  };
  await using petstore = run([join(import.meta.dirname, "main.ts")], env);
  await petstore.printed(/is ready/);
  expect(petstore.output()).toContain(`  API        http://${shown}:${base} `);
  expect(petstore.output()).toContain(`  pet        http://${shown}:${base + 1} `);

  const typed = shown.includes("[") ? `'http://${shown}:${base}/pets'` : `http://${shown}:${base}/pets`;
  expect(petstore.output()).toContain(`  curl ${typed}\n`);

  let count = 0;
  for (const name of names) {
    const gateway = `http://${name}:${base}`;
    const pet = `${name}:${base + 1}`;
    await created(`${gateway}/categories`, '{"name":"dogs"}').toBe("201");
    await created(`${gateway}/pets`, '{"name":"Rex","categoryId":1}').toBe("201");
    count++;
    const rpc = `${PetService.typeName}/ListPets`;
    expect(JSON.parse(await curl(`http://${pet}/${rpc}`, "--json", "{}")).pets).toHaveLength(count);
    expect(await curl(...status, "--http2-prior-knowledge", `http://${pet}/${rpc}`, "--json", "{}")).toBe("200");
    expect(await listByGrpcJs(pet)).toBe(count);
    const baseUrl = `http://${pet}`;
    for (const transport of [
      createConnectTransport({ baseUrl, httpVersion: "2", idleConnectionTimeoutMs: 1 }),
      createConnectTransport({ baseUrl: gateway, httpVersion: "1.1" }),
      createGrpcTransport({ baseUrl, idleConnectionTimeoutMs: 1 }),
    ])
      expect((await createClient(PetService, transport).listPets({}, { timeoutMs: 20_000 })).pets).toHaveLength(count);
  }
  const healthy = async () => {
    const it = run([join(import.meta.dirname, "../scripts/healthy.ts")], env);
    return [await it.ended, it.output()];
  };
  // A gateway on a busy machine may take a process for missing when it first asks.
  await expect.poll(healthy, { timeout: 60_000 }).toEqual([0, expect.stringContaining('"ready"')]);

  petstore.process.kill("SIGTERM");
  expect(await petstore.ended).toBe(0);
});
