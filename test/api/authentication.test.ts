/** The real processes with API keys: one caller is the same at every endpoint, in every log, and in what is kept of it. */
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { parseApiKey } from "../../packages/rpc/auth/credentials.ts";
import {
  createKey,
  formatKeyFile,
  type KeyFile,
  noKeys,
  revokeKey,
  rotateKey,
} from "../../packages/rpc/auth/key-file.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

const create = (content: KeyFile, name: string, ...scopes: string[]) =>
  createKey(content, { name, scopes, expires: undefined });
const ann = create(noKeys, "ann", "*");
const bob = create(ann.content, "bob", "*");
const guess = create(noKeys, "nobody", "*");
const reader = create(bob.content, "reader", "pets:read");

let directory: string;
let petstore: Petstore;
/** All that was ever shown, of which nothing may be logged. */
const shown = new Set<string>();
const file = () => join(directory, "keys.json");

async function write(content: KeyFile): Promise<void> {
  await writeFile(`${file()}.new`, formatKeyFile(content));
  await rename(`${file()}.new`, file());
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "authentication-"));
  await write(reader.content);
  petstore = await startPetstore({ env: { AUTH_MODE: "keys", API_KEYS_FILE: file() } });
});
afterAll(async () => {
  await petstore?.stop();
  await rm(directory, { recursive: true });
});

async function http(key: string | undefined, method: string, path: string, body?: object, headers = {}) {
  if (key !== undefined) shown.add(key);
  const credential: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const answer = await fetch(petstore.http + path, {
    method,
    headers: { ...credential, ...(body && { "content-type": "application/json" }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, id: answer.status === 201 ? (JSON.parse(text).id as number) : undefined };
}
// An address may show 20 credentials that are not valid in a minute.
const seldom = { timeout: 30_000, interval: 1000 };

const bearer = (key: string) => {
  shown.add(key);
  return { headers: { authorization: `Bearer ${key}` } };
};

test("an idempotency key belongs to its caller, at every endpoint and after its credential was rotated", async () => {
  const key = { "idempotency-key": "tuesday" };
  const first = await http(ann.key, "POST", "/store/orders", {}, key);
  expect(first.status).toBe(201);
  expect(await http(ann.key, "POST", "/store/orders", {}, key)).toEqual(first);
  const other = await http(bob.key, "POST", "/store/orders", {}, key);
  expect(other.status).toBe(201);
  expect(other.id).not.toBe(first.id);

  const request = { order: {}, requestId: "tuesday" };
  const atTheService = createClient(OrderService, petstore.transport(OrderService));
  const throughTheGateway = createClient(OrderService, petstore.endpoint);
  for (const orders of [atTheService, throughTheGateway]) {
    expect(Number((await orders.createOrder(request, bearer(ann.key))).order?.id)).toBe(first.id);
    expect(Number((await orders.createOrder(request, bearer(bob.key))).order?.id)).toBe(other.id);
  }

  const rotated = rotateKey(reader.content, ann.id);
  await write(rotated.content);
  await expect.poll(async () => (await http(rotated.key, "GET", "/pets")).status, seldom).toBe(200);
  await expect.poll(async () => (await http(ann.key, "GET", "/pets")).status, seldom).toBe(401);
  expect(await http(rotated.key, "POST", "/store/orders", {}, key)).toEqual(first);
  await write(reader.content);
  await expect.poll(async () => (await http(ann.key, "GET", "/pets")).status, seldom).toBe(200);
});

test("the logs of all that take part name the caller, and nothing logs a credential", async () => {
  const { id: categoryId } = await http(bob.key, "POST", "/categories", { name: "dogs" });
  const pet = await http(bob.key, "POST", "/pets", { name: "Rex", categoryId });
  expect(pet.status).toBe(201);
  expect((await http(bob.key, "POST", "/store/orders", { petId: pet.id })).status).toBe(201);
  for (const name of ["gateway", "pet", "category", "order", "inventory"] as const)
    await expect.poll(() => petstore.logs(name)).toContain(`"caller":"key:${bob.id}"`);

  // Refused in every way that there is, at both kinds of process.
  expect((await http(guess.key, "GET", "/pets")).status).toBe(401);
  expect((await http(`${bob.key.slice(0, -1)}x`, "GET", "/pets")).status).toBe(401);
  expect((await http(reader.key, "POST", "/categories", { name: "cats" })).status).toBe(403);
  shown.add("secret-in-basic");
  const basic = { authorization: `Basic ${Buffer.from("ann:secret-in-basic").toString("base64")}` };
  expect((await http(undefined, "GET", "/pets", undefined, basic)).status).toBe(401);
  shown.add(basic.authorization.slice("Basic ".length));
  expect((await http(ann.key, "GET", "/pets", undefined, { "x-api-key": bob.key })).status).toBe(401);
  const pets = createClient(PetService, petstore.transport(PetService));
  await expect(pets.listPets({}, bearer(guess.key))).rejects.toThrow("not known here");
  await expect(pets.createPet({}, bearer(reader.key))).rejects.toThrow("pets:write");

  await expect.poll(() => petstore.logs()).toContain("PermissionDenied");
  const logs = petstore.logs();
  for (const credential of shown) {
    expect(logs).not.toContain(credential);
    if (credential.startsWith("psk_") && !credential.endsWith("x"))
      expect(logs).not.toContain(parseApiKey(credential).secret);
  }
});

test("a stream ends with its key, at every endpoint, and goes on with another one without a gap", async () => {
  const owner = create(reader.content, "owner", "categories:*");
  const rotated = rotateKey(owner.content, owner.id);
  shown.add(rotated.key);
  await write(owner.content);
  // Each process reads the file by itself.
  await expect.poll(async () => (await http(owner.key, "GET", "/categories")).status, seldom).toBe(200);
  const { listCategories } = createClient(CategoryService, petstore.transport(CategoryService));
  const isKnown = () =>
    listCategories({}, bearer(owner.key)).then(
      () => true,
      () => false,
    );
  await expect.poll(isKnown, seldom).toBe(true);
  const watches = [petstore.transport(CategoryService), petstore.endpoint].map((transport) => {
    const { watchCategories } = createClient(CategoryService, transport);
    return (key: string, resumeToken = "") => watchCategories({ resumeToken }, bearer(key))[Symbol.asyncIterator]();
  });
  const events = (key: string, lastId = "") =>
    fetch(`${petstore.http}/events?types=category${lastId && `&lastEventId=${lastId}`}`, bearer(key));

  const streams = watches.map((watch) => watch(owner.key));
  const tokens = await Promise.all(streams.map(async (stream) => (await stream.next()).value?.resumeToken));
  const told = await events(owner.key);
  await write(rotated.content);
  for (const stream of streams) await expect(stream.next()).rejects.toMatchObject({ code: Code.Unauthenticated });
  const text = await told.text();
  expect(text).toMatch(/event: error\ndata: \{"code":"UNAUTHENTICATED".*\n\n$/);

  expect((await http(rotated.key, "POST", "/categories", { name: "meanwhile" })).status).toBe(201);
  for (const [i, watch] of watches.entries()) {
    const stream = watch(rotated.key, tokens[i]);
    await stream.next(); // the heartbeat that each begins with
    expect((await stream.next()).value?.response).toMatchObject({
      case: "event",
      value: { category: { name: "meanwhile" } },
    });
    await stream.return?.();
  }
  const [, lastId = ""] = /^id: (.*)$/m.exec(text) ?? [];
  const body = (await events(rotated.key, lastId)).body?.pipeThrough(new TextDecoderStream()) ?? [];
  let seen = "";
  for await (const chunk of body) {
    seen += chunk;
    if (seen.includes('"name":"meanwhile"')) break;
  }
  expect(seen).toContain("petstore.category.created.v1");
  await write(reader.content);
});

test("a key that is revoked ends at every process, while they run", async () => {
  const clients = {
    pet: createClient(PetService, petstore.transport(PetService)).listPets,
    category: createClient(CategoryService, petstore.transport(CategoryService)).listCategories,
    order: createClient(OrderService, petstore.transport(OrderService)).listOrders,
    inventory: createClient(InventoryService, petstore.transport(InventoryService)).listInventory,
    gateway: createClient(PetService, createConnectTransport({ baseUrl: petstore.http, httpVersion: "1.1" })).listPets,
  };
  const outcomes = (key: string) =>
    Promise.all(
      Object.values(clients).map((list) =>
        list({}, bearer(key)).then(
          () => "answered",
          (error) => error.code,
        ),
      ),
    );
  expect(new Set(await outcomes(bob.key))).toEqual(new Set(["answered"]));
  await write(revokeKey(reader.content, bob.id));
  await expect.poll(() => outcomes(bob.key), seldom).toEqual(Array(5).fill(16));
  expect(new Set(await outcomes(ann.key))).toEqual(new Set(["answered"]));
});
