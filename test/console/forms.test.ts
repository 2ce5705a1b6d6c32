/** What the console shows of a call is true: the same by curl, gRPC and Connect, and the answer that comes. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createPetstore, isPetstoreError, PetStatus } from "@petstore/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formsOf } from "../../console/requests/forms.ts";
import { answerText, httpAnswer, httpError, operationOf, reasonOf } from "../../console/requests/http.ts";
import { type Call, calls, recorded } from "../../console/requests/log.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

/** Until it is refused for what it is, and not for a service that has just started. */
async function refusal(call: () => Promise<unknown>): Promise<void> {
  const thrown = await call().catch((error: unknown) => error);
  if (isPetstoreError(thrown) && thrown.reason === "UNAVAILABLE") return refusal(call);
  expect(isPetstoreError(thrown)).toBe(true);
}

let petstore: Petstore;
let made: readonly Call[];
beforeAll(async () => {
  petstore = await startPetstore();
  const transport = createConnectTransport({ baseUrl: petstore.http, httpVersion: "1.1", interceptors: [recorded] });
  const { pets, categories, orders, inventory } = createPetstore({ transport });
  const { category } = await categories.createCategory({
    category: { name: 'it\'s "dogs" & <cats>', description: "ü" },
  });
  const categoryId = category?.id ?? 0n;
  const { pet } = await pets.createPet({ pet: { name: "Rex", categoryId } });
  const petId = pet?.id ?? 0n;
  await pets.createPet({ pet: { name: "Max", categoryId, status: PetStatus.PENDING } });
  await pets.listPets({ limit: 1, status: [PetStatus.AVAILABLE, PetStatus.PENDING], categoryId });
  await orders.createOrder({ order: { petId, shipDate: { seconds: 1_800_000_000n, nanos: 5_000_000 } } });
  await refusal(() => orders.createOrder({ order: { petId: 99n, quantity: 3 } }));
  await orders.listOrders({ complete: false, orderBy: "id" });
  await orders.updateOrder({
    orderId: 1n,
    order: { complete: true },
    updateMask: { paths: ["complete", "ship_date"] },
  });
  await inventory.updateInventory({ petId, inventory: { quantity: 10 } });
  await inventory.getInventory({ petId });
  await categories.updateCategory({ categoryId, category: { name: "dogs" } });
  await refusal(() => categories.deleteCategory({ categoryId }));
  await pets.batchGetPets({ petId: [petId, 99n] });
  made = calls.value
    .filter(({ end }) => !(end && "error" in end && reasonOf(end.error) === "UNAVAILABLE"))
    .toReversed();
  expect(made).toHaveLength(13);
});
afterAll(() => petstore.stop());

const shell = async (command: string) => (await promisify(execFile)("sh", ["-c", command])).stdout;
const formOf = ({ method, request }: Call, name: string) =>
  formsOf(method, request, { baseUrl: petstore.http, isAsking: false }).find((form) => form.name === name)?.text;

const answerOf = ({ method, request, end }: Call) => {
  if (!end) throw new Error(`${method.name} is not over.`);
  if ("error" in end) return httpError(reasonOf(end.error), end.error.rawMessage);
  const operation = operationOf(method, request);
  if (!operation) throw new Error(`${method.name} has no operation.`);
  return httpAnswer(operation, method, end.answer);
};

/** What changes nothing when it is done again: reads, what has a key, and what sets what is set. */
const again = () => made.filter(({ method }) => !/^(List|Get|Batch)/.test(method.name));

test("by curl, with the answer that is shown", async () => {
  for (const call of again()) {
    const command = formOf(call, "curl") ?? "";
    const printed = await shell(`${command.replace("curl", "curl -si")}`);
    const [head = "", body = ""] = printed.replaceAll("\r", "").split("\n\n");
    const { status, headers, body: shown } = answerOf(call);
    expect([command, head.split(" ")[1]]).toEqual([command, `${status}`]);
    for (const [name, value] of headers.filter(([name]) => name !== "ETag"))
      expect(head.toLowerCase(), command).toContain(`${name}: ${value}`.toLowerCase());
    // The same members in the same order; only white space is for people.
    const text = answerText({ status, headers, body: shown }).split("\n\n")[1] ?? "";
    expect([command, JSON.parse(body)]).toEqual([command, JSON.parse(text)]);
  }
});

test("lists by curl give what they gave", async () => {
  const lists = made.filter(({ method }) => method.name.startsWith("List"));
  expect(lists).toHaveLength(2);
  for (const call of lists) {
    const command = formOf(call, "curl") ?? "";
    const ids = (text: string) => (JSON.parse(text) as { id: number }[]).length;
    expect([command, ids(await shell(command.replace("curl", "curl -s")))]).toEqual([
      command,
      call.method.name === "ListOrders" ? 0 : 1,
    ]);
  }
});

test("by Connect and gRPC", async () => {
  for (const call of made.filter(({ method }) => /^(Get|Batch|Create)/.test(method.name))) {
    const isFailed = call.end && "error" in call.end;
    const connect = formOf(call, "Connect") ?? "";
    const answer = JSON.parse(await shell(connect.replace("curl", "curl -s")));
    expect([connect, "code" in answer]).toEqual([connect, isFailed]);
    if (isFailed) continue;
    // The services of a test are not at the ports that npm start gives them.
    const service = call.method.parent.name.replace("Service", "").toLowerCase() as "pet";
    const grpc = formOf(call, "gRPC") ?? "";
    const here = grpc
      .replace(/http:\/\/127\.0\.0\.1:\d+/, petstore.url(service))
      .replace("npx buf", "node_modules/.bin/buf");
    expect([grpc, JSON.parse(await shell(here))]).toEqual([grpc, answer]);
  }
});

test("by TypeScript, as the client package takes it", async () => {
  const { pets, categories, orders, inventory } = createPetstore({
    transport: createConnectTransport({ baseUrl: petstore.http, httpVersion: "1.1" }),
  });
  for (const { method, request } of made) {
    const [, service = "", name = "", init = ""] =
      /^const answer = await petstore\.(\w+)\.(\w+)\((.*)\);$/s.exec(
        formOf({ method, request } as Call, "TypeScript") ?? "",
      ) ?? [];
    expect({ pets, categories, orders, inventory }[service]).toHaveProperty(name);
    const told = new Function("PetStatus", `return ${init}`)(PetStatus);
    expect([init, create(method.input, told)]).toEqual([init, request]);
  }
});

test("what has no operation of HTTP is shown as RPCs alone", () => {
  const batch = made.find(({ method }) => method.name.startsWith("Batch"));
  const forms = batch && formsOf(batch.method, batch.request, { baseUrl: petstore.http, isAsking: true });
  expect(forms?.map(({ name }) => name)).toEqual(["gRPC", "grpcurl", "Connect", "TypeScript"]);
  expect(
    forms?.every(({ name, text }) => name === "TypeScript" || text.includes('"Authorization: Bearer $CREDENTIAL"')),
  );
  expect(forms?.at(-1)?.text).toBe("const answer = await petstore.pets.batchGetPets({ petId: [1n, 99n] });");
});
