/** What the console shows of a call is true: the same by curl, gRPC and Connect, and the answer that comes. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createPetstore, PetstoreError } from "@petstore/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formsOf } from "../../console/requests/forms.ts";
import { answerText, httpAnswer, httpError, operationOf, reasonOf } from "../../console/requests/http.ts";
import { type Call, calls, recorded } from "../../console/requests/log.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

/** Until it is refused for what it is, and not for a service that has just started. */
async function refusal(call: () => Promise<unknown>): Promise<void> {
  const thrown = await call().catch((error: unknown) => error);
  if (thrown instanceof PetstoreError && thrown.code === "UNAVAILABLE") return refusal(call);
  expect(thrown).toBeInstanceOf(PetstoreError);
}

let petstore: Petstore;
let made: readonly Call[];
beforeAll(async () => {
  petstore = await startPetstore();
  const transport = createConnectTransport({ baseUrl: petstore.http, httpVersion: "1.1", interceptors: [recorded] });
  const { pets, categories, orders, inventory } = createPetstore({ transport });
  const { id: categoryId } = await categories.create({ name: 'it\'s "dogs" & <cats>', description: "ü" });
  const { id: petId } = await pets.create({ name: "Rex", categoryId });
  await pets.create({ name: "Max", categoryId, status: "pending" });
  await pets
    .list({ limit: 1, status: ["available", "pending"], categoryId })
    .pages()
    .next();
  await orders.create({ petId, shipDate: "2027-01-15T08:00:00.005Z" });
  await refusal(() => orders.create({ petId: 99, quantity: 3 }));
  await Array.fromAsync(orders.list({ complete: false, orderBy: "id" }));
  await orders.update(1, { shipDate: null, complete: true });
  await inventory.replace(petId, { quantity: 10 });
  await inventory.get(petId);
  await inventory.update(petId, { quantity: 11 }, { ifMatch: "*" });
  await categories.replace(categoryId, { name: "dogs" });
  await refusal(() => categories.delete(categoryId));
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
const again = () => made.filter(({ method }) => !/^(List|Get)/.test(method.name));

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
  for (const call of made.filter(({ method }) => /^(Get|Create)/.test(method.name))) {
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
  for (const call of made) {
    const text = formOf(call, "TypeScript") ?? "";
    const sent: unknown[] = [];
    const unary: Transport["unary"] = async (method, _signal, _timeout, _header, message) => {
      sent.push([method, message]);
      throw new ConnectError("That is all.", Code.InvalidArgument);
    };
    const told = new Function("petstore", `return (async () => { ${text} })();`);
    const transport = { unary, stream: () => expect.unreachable() };
    await told(createPetstore({ transport, maxRetries: 0 })).catch(() => {});
    expect([text, sent]).toEqual([text, [[call.method, call.request]]]);
  }
});
