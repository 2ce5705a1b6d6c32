/** `npm start` with the certificates of `npm run certs`. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { request as overHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { type Run, run } from "../packages/runtime/fixtures/run.ts";
import { type ProcessName, portOf, processNames } from "../processes/names.ts";
import { freePorts } from "../test/harness/instances.ts";

const root = join(import.meta.dirname, "..");
let directory: string;
let petstore: Run;
let portBase: number;
let env: Record<string, string>;
const at = (file: string) => join(directory, file);
const url = (name: ProcessName) => `https://127.0.0.1:${portOf(name, portBase)}`;
const trusted = async () => ({ ca: await readFile(at("ca.pem"), "utf8") });

const certs = (...options: string[]) =>
  promisify(execFile)(process.execPath, [join(root, "scripts/certs.ts"), "--dir", directory, ...options]);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "petstore-tls-"));
  const { stdout } = await certs();
  portBase = await freePorts();
  // What the command says is what is done.
  const [line = ""] = stdout.match(/TLS_CERT=.* npm start$/m) ?? [];
  const settings = line.split(" ").flatMap((part) => (part.includes("=") ? [part.split("=") as [string, string]] : []));
  env = { ...Object.fromEntries(settings), PORT_BASE: `${portBase}`, DATA_DIR: at("data") };
  expect(Object.keys(env)).toEqual(["TLS_CERT", "TLS_KEY", "INTERNAL_TLS_CA", "PORT_BASE", "DATA_DIR"]);
  petstore = run([join(root, "launcher/main.ts")], env);
  await petstore.printed(/Ctrl-C stops everything/);
}, 120_000);
afterAll(async () => {
  await petstore?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Becomes the answer to a create: on a busy machine a service may not have answered another in time, and it is sent again. */
const created = (path: string, body: object) => expect.poll(() => post(path, body).catch(String), { timeout: 30_000 });

async function post(path: string, body: object): Promise<unknown> {
  const headers = { "content-type": "application/json", "idempotency-key": encodeURIComponent(JSON.stringify(body)) };
  const request = overHttps(url("gateway") + path, { ...(await trusted()), method: "POST", headers, agent: false });
  const [response] = await once(request.end(JSON.stringify(body)), "response");
  return json(response);
}

async function getByHttp2(path: string): Promise<unknown> {
  const session = connectHttp2(url("gateway"), await trusted());
  try {
    const answer = await json(session.request({ ":path": path }));
    expect(session.alpnProtocol).toBe("h2");
    return answer;
  } finally {
    session.close();
  }
}

test("every address that is told is https", () => {
  for (const name of processNames) {
    const told = name === "gateway" ? "API" : name;
    expect(petstore.output()).toMatch(new RegExp(`^  ${told} +${url(name)} `, "m"));
  }
  expect(petstore.output()).not.toContain("http://");
  expect(petstore.output()).toContain(`  curl --cacert ${at("ca.pem")} ${url("gateway")}/pets\n`);
});

test("operations work over HTTP/1.1 and HTTP/2, through all services", async () => {
  await created("/categories", { name: "dog" }).toMatchObject({ name: "dog" });
  await created("/pets", { name: "Rex", categoryId: 1 }).toMatchObject({ name: "Rex", categoryId: 1 });
  await created("/store/orders", { petId: 1 }).toMatchObject({ petId: 1, complete: false });
  expect(await getByHttp2("/store/inventory/1")).toMatchObject({ petId: 1, quantity: 0 });
  // A service that was slow to answer one look is well at a later one.
  await expect.poll(() => getByHttp2("/readyz"), { timeout: 30_000 }).toEqual({ status: "ready", failing: [] });
});

test("so do RPCs, and internal ones are for own processes", async () => {
  const nodeOptions = await trusted();
  const endpoint = createConnectTransport({ baseUrl: url("gateway"), httpVersion: "1.1", nodeOptions });
  const grpc = (name: ProcessName) => createGrpcTransport({ baseUrl: url(name), nodeOptions });
  for (const transport of [endpoint, grpc("category")]) {
    const { categories } = await createClient(CategoryService, transport).listCategories({});
    expect(categories).toMatchObject([{ name: "dog" }]);
  }
  const internal = createClient(PetInternalService, grpc("pet"));
  const refused = await internal.closeCategory({ categoryId: 1n }).catch((error) => ConnectError.from(error).code);
  expect(refused).toBe(Code.PermissionDenied);
});

test.each(processNames)("the health check of the container of %s finds it", async (name) => {
  const asked = { env: { PORT: `${portOf(name, portBase)}`, TLS_CERT: env.TLS_CERT } };
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, "scripts/healthy.ts")], asked);
  expect(stdout).toMatch(/ready|SERVING/);
});

test("other certificates take the place of these while it runs", async () => {
  await expect(certs()).rejects.toThrow("is there already");
  await certs("--force");
  // Processes look twice a second, each by itself.
  await created("/pets", { name: "Tom", categoryId: 1 }).toMatchObject({ name: "Tom" });
  expect(petstore.output()).not.toMatch(/"level":"(error|fatal)"/);
});

test("it stops in good order", async () => {
  petstore.process.kill("SIGTERM");
  expect(await petstore.ended).toBe(0);
});
