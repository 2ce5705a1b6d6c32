/**
 * Who calls is found out once, at the gateway's seam, and is known to every handler of every service that takes part:
 * through retries and links, and where a recovery worker finishes what the caller began. Nobody else can say it.
 */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { CALLER_HEADER, type Call, SECRET_HEADER } from "@petstore/rpc/call";
import { createServiceTransport } from "@petstore/rpc/client/pipeline";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import type { Implementation } from "@petstore/rpc/server/handlers";
import { createHealth } from "@petstore/rpc/server/health";
import { startRpcServer } from "@petstore/rpc/server/server";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { errors } from "#errors";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway, testLimits } from "../../gateway/fixtures/gateway.ts";
import { rpcEndpoint } from "../../gateway/rpc-endpoint.ts";
import { publicServices } from "../../gateway/services.ts";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { createService } from "../../services/create.ts";
import { storeFailureOf } from "../../services/observed-store.ts";
import type { Deps, ServiceModule } from "../../services/records/module.ts";
import { RETENTION } from "../../services/records/retention.ts";

const SECRET = "a secret of the processes";
const USER = "x-test-user";
const stack = new AsyncDisposableStack();
const modules = new Map<string, ServiceModule>();
const urls = new Map<string, string>();

/** What handlers saw: "Service/Rpc by caller". */
let seen: string[] = [];
/** The failpoint at which whatever is done ends, as it would with the process. */
let diesAt: string | undefined;
/** The RPC whose next reply is lost after it was carried out. */
let losesReplyOf: string | undefined;
/** How much later it is by now. */
let laterMs = 0;
const clock = () => realTime.clock() + laterMs;
const time = { ...realTime, clock };

const watched = ({ handlers, ...rest }: Implementation): Implementation => ({
  ...rest,
  handlers: Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => [
      name,
      (request: Message, call: Call) => {
        seen.push(`${rest.desc.name}/${rest.desc.method[name]?.name} by ${call.caller}`);
        return handler(request, call as never) as never;
      },
    ]),
  ),
});

/** Carries calls out, alone or over a link, and loses a reply when it is told to. */
function losingReplies(dispatcher: Dispatcher): Dispatcher {
  function lose(method: DescMethod): void {
    if (method.name !== losesReplyOf) return;
    losesReplyOf = undefined;
    throw new ConnectError("the connection broke", Code.Unavailable);
  }
  return {
    ...dispatcher,
    async invoke(method, request, incoming) {
      if (incoming.isPeer) seen.push("over a link");
      const answer = await dispatcher.invoke(method, request, incoming);
      lose(method);
      return answer;
    },
    routes(router) {
      const rpc = (method: DescMethod, handle: (...call: unknown[]) => unknown, options: object) =>
        router.rpc(
          method as never,
          (async (...call: unknown[]) => {
            const answer = await handle(...call);
            lose(method);
            return answer;
          }) as never,
          options,
        );
      dispatcher.routes({ ...router, rpc } as never);
    },
  };
}

async function start(name: string, create: (deps: Deps) => Promise<ServiceModule>): Promise<void> {
  const log = pino({ level: "silent" });
  const failpoint = (reached: string) => {
    if (reached !== diesAt) return;
    diesAt = undefined;
    throw new Error(`died at ${reached}`);
  };
  const deps: Deps = { ...time, store: openMemory({ clock }), log, retention: RETENTION, failpoint };
  const module = await create(deps);
  const dispatcher = createDispatcher(module.implementations.map(watched), {
    deps,
    secret: SECRET,
    errors,
    storeFailureOf,
  });
  const health = createHealth([]);
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    log,
    dispatcher: losingReplies(dispatcher),
    health,
  });
  stack.use(server);
  modules.set(name, module);
  urls.set(name, server.url);
}

const transports = new Map<string, Transport>();
/** To a service that may not have been started yet: they call each other both ways. */
function transportTo(name: string): Transport {
  const opened = () => {
    const known = transports.get(name);
    if (known) return known;
    const transport = createServiceTransport({ urls: [urls.get(name) ?? ""], secret: SECRET, errors, ...time });
    stack.defer(() => transport.close());
    transports.set(name, transport);
    return transport;
  };
  return {
    unary: (...call) => opened().unary(...call),
    stream: (...call) => opened().stream(...call),
  };
}
let gateway: Awaited<ReturnType<typeof startGateway>>;
/** Requests that are held at the seam until so many are there. */
let together = { count: 1, arrived: 0, go: Promise.withResolvers<void>() };
beforeAll(async () => {
  for (const { name } of publicServices) await start(name, (deps) => createService(name, deps, transportTo));
  const services = publicServices.map(({ name, desc }) => ({ desc, transport: transportTo(name) }));
  const endpoint = rpcEndpoint({ basePath: "", services, limits: { ...testLimits, rpcBytes: 2 ** 20 }, clock });
  gateway = await startGateway(
    PetService,
    {},
    {
      services,
      clock,
      plugins: [endpoint],
      auth: {
        admit: async ({ headers }) => {
          if (++together.arrived === together.count) together.go.resolve();
          await together.go.promise;
          return { id: `${headers[USER] ?? "stranger"}` };
        },
      },
    },
  );
  stack.defer(() => gateway.app.close());
});
afterAll(() => stack.disposeAsync());

const holdUntil = (count: number) => {
  together = { count, arrived: 0, go: Promise.withResolvers<void>() };
};

/** Calls by HTTP, with JSON. */
async function http(caller: string, method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const { text, status } = await gateway.call(path, {
    method,
    headers: { [USER]: caller, "content-type": "application/json", ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status, record: text === "" ? undefined : JSON.parse(text) };
}

const rpcTransports: Record<string, () => Transport> = {
  Connect: () => createConnectTransport({ baseUrl: gateway.base, httpVersion: "1.1" }),
  "gRPC-Web": () => createGrpcWebTransport({ baseUrl: gateway.base, httpVersion: "1.1" }),
};

let categoryId: number;
let petId: number;
beforeEach(async () => {
  diesAt = losesReplyOf = undefined;
  holdUntil(1);
  categoryId = (await http("keeper", "POST", "/categories", { name: "dogs" })).record.id;
  petId = (await http("keeper", "POST", "/pets", { name: "Rex", categoryId })).record.id;
  await statusesTold();
  seen = [];
});

/** Resolves when every pet has the status that follows from its stock: it is told behind the answers. */
async function statusesTold(): Promise<void> {
  const statuses = async (path: string, id: "id" | "petId") => {
    const { record } = await http("keeper", "GET", `${path}?limit=100`);
    return new Map<number, string>(record.map((one: Record<string, never>) => [one[id], one.status]));
  };
  const late = async () => {
    const [pets, stock] = [await statuses("/pets", "id"), await statuses("/store/inventory", "petId")];
    return [...pets].filter(([id, status]) => status !== (stock.get(id) ?? status));
  };
  await expect.poll(late).toEqual([]);
}

/** Callers by RPC, of what a caller has set off. The petstore tells statuses, and asks for old orders, in its own name. */
const callers = () =>
  [...new Set(seen)].filter((line) => !/ApplyStatuses|GetHighestOrder|^over a link$/.test(line)).sort();

/** A clock that goes on, as for work that a crash has left, and one run of all workers of a service. */
async function recover(name: string): Promise<void> {
  laterMs += 60_000;
  seen = [];
  for (const { run } of modules.get(name)?.workers ?? []) await run(100);
}

describe("every service that takes part sees the caller", () => {
  test("of an HTTP request", async () => {
    await http("ann", "POST", "/pets", { name: "Tom", categoryId });
    expect((await http("ann", "POST", "/store/orders", { petId, complete: true })).status).toBe(201);
    expect((await http("ann", "DELETE", `/categories/${categoryId}`)).status).toBe(409);
    expect(callers()).toEqual([
      "CategoryService/DeleteCategory by ann",
      "InventoryInternalService/Commit by ann",
      "InventoryInternalService/Open by ann",
      "InventoryInternalService/Reserve by ann",
      "OrderService/CreateOrder by ann",
      "PetInternalService/CloseCategory by ann",
      "PetInternalService/OpenCategory by ann",
      "PetService/CreatePet by ann",
    ]);
  });

  test.each(Object.keys(rpcTransports))("of %s", async (protocol) => {
    const orders = createClient(OrderService, (rpcTransports[protocol] as () => Transport)());
    const headers = { [USER]: "bob" };
    const { order } = await orders.createOrder({ order: { petId: BigInt(petId) } }, { headers });
    await orders.deleteOrder({ orderId: order?.id ?? 0n }, { headers });
    expect(callers()).toEqual([
      "InventoryInternalService/Release by bob",
      "InventoryInternalService/Reserve by bob",
      "OrderService/CreateOrder by bob",
      "OrderService/DeleteOrder by bob",
    ]);
  });

  test("when the call is retried after its reply was lost", async () => {
    losesReplyOf = "GetPet";
    expect((await http("ann", "GET", `/pets/${petId}`)).status).toBe(200);
    losesReplyOf = "Reserve";
    expect((await http("ann", "POST", "/store/orders", { petId })).status).toBe(201);
    expect(seen.filter((line) => line === "PetService/GetPet by ann")).toHaveLength(2);
    expect(seen.filter((line) => line === "InventoryInternalService/Reserve by ann")).toHaveLength(2);
    expect(callers().every((line) => line.endsWith(" by ann"))).toBe(true);
  });

  test("over a link with calls of others", async () => {
    const names = ["ann", "bob", "cyd", "dan"];
    holdUntil(2 * names.length);
    const pets = createClient(PetService, rpcTransports.Connect?.() as Transport);
    await Promise.all([
      ...names.map((name) => http(`${name} by HTTP`, "GET", `/pets/${petId}`)),
      ...names.map((name) => pets.batchGetPets({ petId: [] }, { headers: { [USER]: `${name} by RPC` } })),
    ]);
    expect(seen.filter((line) => line === "over a link")).toHaveLength(2 * names.length);
    expect(callers()).toEqual(
      names
        .flatMap((name) => [`PetService/BatchGetPets by ${name} by RPC`, `PetService/GetPet by ${name} by HTTP`])
        .sort(),
    );
  });
});

describe("a saga is finished in the name of the caller that began it", () => {
  test("a pet that is created, and one that is changed", async () => {
    diesAt = "pet.creating";
    expect((await http("ann", "POST", "/pets", { name: "Tom", categoryId })).status).toBe(503);
    diesAt = "pet.intent";
    expect((await http("bob", "DELETE", `/pets/${petId}`)).status).toBe(503);
    await recover("pet");
    expect(callers()).toEqual(["InventoryInternalService/Open by ann", "InventoryInternalService/Retire by bob"]);
  });

  test("a category that is deleted", async () => {
    diesAt = "category.deleting";
    expect((await http("ann", "DELETE", `/categories/${categoryId}`)).status).toBe(503);
    await recover("category");
    expect(callers()).toEqual(["PetInternalService/CloseCategory by ann", "PetInternalService/OpenCategory by ann"]);
  });
});

test("what nobody asked for is done in the petstore's own name", async () => {
  const { record } = await http("ann", "POST", "/store/orders", { petId });
  diesAt = "order.complete";
  expect((await http("bob", "PATCH", `/store/orders/${record.id}`, { complete: true })).status).toBe(503);
  await statusesTold(); // a clock that goes on would end the time that the telling has
  await recover("inventory");
  await recover("inventory");
  expect(callers()).toEqual(["OrderInternalService/ResolveReservations by system"]);
  await http("ann", "PUT", `/store/inventory/${petId}`, { quantity: 0 });
  await expect.poll(() => seen.filter((line) => /ApplyStatuses/.test(line))).not.toEqual([]);
  expect(seen).toContain("PetInternalService/ApplyStatuses by system");
});

describe("a stranger can't name another caller", () => {
  const forged = { [CALLER_HEADER]: "ann", [SECRET_HEADER]: "a guess" };

  test("by HTTP at the gateway", async () => {
    await gateway.call(`/pets/${petId}`, { headers: forged });
    expect(callers()).toEqual(["PetService/GetPet by stranger"]);
  });

  test.each(Object.keys(rpcTransports))("by %s at the gateway", async (protocol) => {
    const pets = createClient(PetService, (rpcTransports[protocol] as () => Transport)());
    await pets.getPet({ petId: BigInt(petId) }, { headers: forged });
    expect(callers()).toEqual(["PetService/GetPet by stranger"]);
  });

  test.each([
    ["gRPC", (baseUrl: string) => createGrpcTransport({ baseUrl })],
    ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
    ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ])("by %s at a service's port", async (_, open) => {
    const { order } = await createClient(OrderService, open(urls.get("order") ?? "")).createOrder(
      { order: { petId: BigInt(petId) } },
      { headers: forged },
    );
    expect(order?.petId).toBe(BigInt(petId));
    expect(callers().map((line) => line.split(" by ")[1])).toEqual(["anonymous", "anonymous"]);
    const categories = createClient(CategoryService, open(urls.get("category") ?? ""));
    await categories.getCategory({ categoryId: BigInt(categoryId) }, { headers: { [CALLER_HEADER]: "ann" } });
    expect(seen).toContain("CategoryService/GetCategory by anonymous");
  });
});
