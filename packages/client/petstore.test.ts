import { create, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createRouterTransport,
  type HandlerContext,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { describe, expect, test, vi } from "vitest";
import { ErrorReasonSchema } from "../../proto/gen/petstore/common/v1/error_reason_pb.ts";
import { error as annotation } from "../transcoder/gen/transcoder/v1/annotations_pb.ts";
import { PetstoreError } from "./errors.ts";
import { failure } from "./fixtures/failure.ts";
import { ViolationsSchema } from "./gen/buf/validate/validate_pb.ts";
import { PetStatus } from "./gen/petstore/common/v1/pet_status_pb.ts";
import { InventoryService } from "./gen/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderSchema } from "./gen/petstore/order/v1/order_pb.ts";
import { type CreateOrderRequest, OrderService } from "./gen/petstore/order/v1/order_service_pb.ts";
import {
  type CreatePetRequest,
  type ListPetsRequest,
  type ListPetsResponseSchema,
  PetService,
} from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { createPetstore, type Petstore, petstoreWith } from "./petstore.ts";

const petstoreOf = (service: Partial<ServiceImpl<typeof PetService>>, credential?: () => string) =>
  createPetstore({
    transport: createRouterTransport(({ service: serve }) => serve(PetService, service)),
    ...(credential && { credential }),
  });

const busy = () => failure("UNAVAILABLE", Code.Unavailable, { "retry-after": "0" });

/** Answers each call with the next of them. */
const inTurn =
  <T>(...answers: (T | ConnectError)[]) =>
  (): T => {
    const answer = answers.shift();
    if (answer instanceof ConnectError || answer === undefined) throw answer ?? new Error("one call too many");
    return answer;
  };
const failing = inTurn<never>;

const rex = { name: "Rex", categoryId: 1 };

const caught = (call: Promise<unknown>): Promise<PetstoreError> =>
  call.then(
    () => expect.unreachable("it succeeded"),
    (error) => (error instanceof PetstoreError ? error : expect.unreachable(`${error}`)),
  );

describe("lists", () => {
  const asked: ListPetsRequest[] = [];
  const petstore = petstoreOf({
    listPets(request): MessageInitShape<typeof ListPetsResponseSchema> {
      asked.push(request);
      const first = Number(request.pageToken || 0);
      return {
        pets: [{ id: BigInt(first + 1) }, { id: BigInt(first + 2) }],
        nextPageToken: first < 4 ? `${first + 2}` : "",
      };
    },
  });

  test("all of it, in order, with the filter on every page", async () => {
    asked.length = 0;
    const ids = await Array.fromAsync(petstore.pets.list({ categoryId: 7 }), ({ id }) => id);
    expect(ids).toEqual([1, 2, 3, 4, 5, 6]);
    expect(asked.map(({ categoryId, pageToken }) => [categoryId, pageToken])).toEqual([
      [7n, ""],
      [7n, "2"],
      [7n, "4"],
    ]);
  });

  test("goes on where a page ended", async () => {
    const [page] = await Array.fromAsync(petstore.pets.list({ pageToken: "4" }).pages());
    expect(page).toMatchObject({ items: [{ id: 5 }, { id: 6 }], nextPageToken: "" });
  });

  test("who stops reading asks for no more", async () => {
    asked.length = 0;
    for await (const { items, nextPageToken } of petstore.pets.list().pages()) {
      expect(items.map(({ id }) => id)).toEqual([1, 2]);
      expect(nextPageToken).toBe("2");
      break;
    }
    expect(asked).toHaveLength(1);
  });
});

describe("what is safe to repeat is repeated", () => {
  test("reads", async () => {
    const petstore = petstoreOf({ getPet: inTurn(busy(), busy(), busy(), { pet: { id: 1n } }) });
    expect((await petstore.pets.get(1)).id).toBe(1);
  });

  test("creates, under one key for all attempts, and another for another call", async () => {
    const keys: (string | undefined)[] = [];
    const answer = inTurn(busy(), { pet: { id: 1n } }, { pet: { id: 2n } });
    const petstore = petstoreOf({
      createPet({ requestId }: CreatePetRequest) {
        keys.push(requestId);
        return answer();
      },
    });
    await petstore.pets.create(rex);
    await petstore.pets.create({ ...rex, name: "Max" });
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  test.each([
    ["RATE_LIMITED", Code.ResourceExhausted, "UNREACHABLE"],
    ["UNAUTHENTICATED", Code.Unauthenticated, "UNREACHABLE"],
    ["CONCURRENT_UPDATE", Code.Aborted, "UNREACHABLE"],
    ["CATEGORY_NOT_FOUND", Code.NotFound, "CATEGORY_NOT_FOUND"],
    ["OVERLOADED", Code.Unavailable, "OVERLOADED"],
  ])("a create without an answer, then %s, fails as what is known of it", async (reason, code, known) => {
    const lost = new ConnectError("the connection broke", Code.Unavailable);
    const then = failure(reason, code, { "retry-after": "60" }); // too long for another attempt
    const { pets } = petstoreOf({ createPet: failing(lost, then) });
    expect((await caught(pets.create(rex))).code).toBe(known);
  });

  test("a create without an answer fails as that where there is no credential for another attempt", async () => {
    const createPet = failing(new ConnectError("the connection broke", Code.Unavailable));
    const credentials = ["psk_1"];
    const credential = () => credentials.pop() ?? expect.unreachable("The vault is closed.");
    expect((await caught(petstoreOf({ createPet }, credential).pets.create(rex))).code).toBe("UNREACHABLE");
  });

  test("the caller's own key is kept", async () => {
    const createPet = vi.fn((_: CreatePetRequest) => ({ pet: { id: 1n } }));
    await petstoreOf({ createPet }).pets.create(rex, { idempotencyKey: "tuesday" });
    expect(createPet.mock.calls[0]?.[0].requestId).toBe("tuesday");
  });

  test("changes are not, unless they were refused for their rate", async () => {
    const answers = [failure("RATE_LIMITED", Code.ResourceExhausted, { "retry-after": "0" }), busy()];
    const error = await caught(petstoreOf({ updatePet: failing(...answers) }).pets.update(1, {}));
    expect(error.code).toBe("UNAVAILABLE");
  });

  test("what would be the same again is not", async () => {
    const getPet = vi.fn(failing(failure("PET_NOT_FOUND", Code.NotFound)));
    expect((await caught(petstoreOf({ getPet }).pets.get(1))).code).toBe("PET_NOT_FOUND");
    expect(getPet).toHaveBeenCalledTimes(1);
  });

  test("four times, and no more", async () => {
    const getPet = vi.fn(failing(busy(), busy(), busy(), busy()));
    expect((await caught(petstoreOf({ getPet }).pets.get(1))).code).toBe("UNAVAILABLE");
    expect(getPet).toHaveBeenCalledTimes(4);
  });

  test("not when the pause is longer than the call may take", async () => {
    const getPet = vi.fn(failing(failure("OVERLOADED", Code.Unavailable, { "retry-after": "60" })));
    const error = await caught(petstoreOf({ getPet }).pets.get(1, { timeout: 30_000 }));
    expect(error).toMatchObject({ code: "OVERLOADED", retryAfterMs: 60_000 });
    expect(getPet).toHaveBeenCalledTimes(1);
  });

  test.each([
    [undefined, 10_000],
    [1500.5, 1501],
    [3_000_000_000, 99_999_999],
    [Number.POSITIVE_INFINITY, 99_999_999],
    [0, undefined],
    [-1, undefined],
  ])("a limit of %s ms is one of %s for every protocol", async (timeout, said) => {
    const asked: unknown[] = [];
    const call = async (...[, , ms]: unknown[]) => {
      asked.push(ms);
      throw failure("PET_NOT_FOUND", Code.NotFound);
    };
    const transport = { unary: call, stream: call } as never;
    const deps = { clock: () => 0, random: () => 0, sleep: async () => {} };
    await caught(petstoreWith({ transport }, deps).pets.get(1, { timeout }));
    await caught(petstoreWith({ transport, timeout }, deps).pets.get(1));
    expect(asked).toEqual([said, said]);
  });

  test("not when the caller goes in a pause, and what it is told is that", async () => {
    const gone = new AbortController();
    const transport = createRouterTransport(({ service }) => service(PetService, { getPet: failing(busy()) }));
    const sleep = async () => gone.abort();
    const { pets } = petstoreWith({ transport }, { clock: () => 0, random: () => 0, sleep });
    expect((await caught(pets.get(1, { signal: gone.signal }))).code).toBe("CANCELLED");
  });

  test("over a transport that is of a class", async () => {
    class Own {
      readonly #routed = createRouterTransport(({ service }) =>
        service(PetService, { getPet: () => ({ pet: { id: 1n, name: "Rex" } }) }),
      );
      unary(...call: Parameters<Transport["unary"]>) {
        return this.#routed.unary(...call);
      }
    }
    expect((await createPetstore({ transport: new Own() as unknown as Transport }).pets.get(1)).name).toBe("Rex");
  });

  test("not after the caller has gone", async () => {
    const gone = new AbortController();
    const getPet = vi.fn(() => {
      gone.abort();
      throw busy();
    });
    const call = petstoreOf({ getPet }).pets.get(1, { signal: gone.signal });
    expect((await caught(call)).code).toBe("CANCELLED");
    expect(getPet).toHaveBeenCalledTimes(1);
  });
});

test("a pause is over at once if the signal was aborted before it", async () => {
  const gone = new AbortController();
  const getPet = failing(failure("OVERLOADED", Code.Unavailable, { "retry-after": "86400" }));
  const transport = createRouterTransport(({ service }) => service(PetService, { getPet }));
  const logger = { debug: () => {}, warn: () => gone.abort() };
  const { pets } = createPetstore({ transport, logger, timeout: 0 });
  expect((await caught(pets.get(1, { signal: gone.signal }))).code).toBe("CANCELLED");
});

test("as often as the client is told to", async () => {
  const getPet = vi.fn(failing(busy(), busy(), busy()));
  const transport = createRouterTransport(({ service }) => service(PetService, { getPet }));
  const told: string[] = [];
  const tell = (text: string) => void told.push(text);
  const logger = { debug: tell, warn: tell };
  const { pets } = petstoreWith(
    { transport, maxRetries: 1, logger },
    { clock: () => 0, random: () => 0.5, sleep: async () => {} },
  );
  await caught(pets.get(1));
  expect(getPet).toHaveBeenCalledTimes(2);
  expect(told).toEqual(["GetPet: UNAVAILABLE, again in 100 ms", "GetPet: UNAVAILABLE, 0 ms"]);
});

describe("errors", () => {
  const never = () => expect.unreachable("it was sent");

  test.each<[string, (petstore: Petstore) => Promise<unknown>, RegExp]>([
    ["an integer that is none", ({ orders }) => orders.create({ petId: 1, quantity: 1.5 }), /quantity.*1\.5/],
    ["an id that no number holds", ({ pets }) => pets.get(2 ** 53), /petId must be an integer below 2\^53/],
    ["no id", ({ pets }) => pets.delete(undefined as never), /petId must be an integer/],
    [
      "a truth that is text",
      ({ orders }) => orders.update(7, { complete: "false" as never }),
      /complete.*boolean.*string/,
    ],
    ["a name that is none", ({ pets }) => pets.update(1, { name: {} as never }), /name must be a string.*object/],
    ["a quantity that is text", ({ orders }) => orders.create({ quantity: "2" as never }), /quantity.*number.*string/],
    [
      "a create of nothing",
      ({ pets }) => pets.create(undefined as never),
      /fields of pet must be an object.*undefined/,
    ],
    ["an update by nothing", ({ pets }) => pets.update(1, null as never), /fields of pet must be an object.*null/],
    ["a replacement by text", ({ pets }) => pets.replace(1, "" as never), /fields of pet must be an object/],
    ["an id that is text", ({ pets }) => pets.get("7" as never), /petId must be an integer.*string/],
    [
      "a status that is none",
      ({ pets }) => pets.update(1, { status: "lost" as never }),
      /one of available, pending, sold, not lost/,
    ],
    [
      "a field that is none",
      ({ pets }) => pets.update(1, { nmae: "Rex" } as never),
      /nmae is not known: NewPet has name/,
    ],
    [
      "a filter that is none",
      ({ pets }) =>
        pets
          .list({ state: 1 } as never)
          .pages()
          .next(),
      /state is not known/,
    ],
    [
      "a date beyond 9999",
      ({ orders }) => orders.create({ shipDate: new Date(1e15) }),
      /shipDate must be a time.*\+033658/,
    ],
    ["a date that is none", ({ orders }) => orders.create({ shipDate: new Date("soon") }), /shipDate must be a time/],
    [
      "a day that is none",
      ({ orders }) => orders.create({ shipDate: "2027-02-30T00:00:00Z" }),
      /shipDate must be a time/,
    ],
    ["no header", ({ pets }) => pets.get(1, { headers: { "no header": "1" } }), /header/i],
    ["a watch of that", ({ pets }) => pets.watch({ categoryId: 0.5 }).next(), /categoryId must be an integer/],
    ["a watch where there is no gateway", ({ watch }) => watch().next(), /baseUrl/],
  ])("of %s say so, and nothing is sent", async (_, call, message) => {
    const error = await caught(call(createPetstore({ transport: { unary: never, stream: never } })));
    expect(error).toMatchObject({ code: "NOT_SENT", status: 0, message: expect.stringMatching(message) });
  });

  test("of a credential that can't be had are those, at once", async () => {
    const credential = vi.fn(() => Promise.reject(new Error("The vault is closed.")));
    const { pets } = createPetstore({ transport: { unary: never, stream: never }, credential });
    for (const call of [pets.get(1), pets.watch().next()])
      expect(await caught(call)).toMatchObject({ code: "NOT_SENT", message: "The vault is closed." });
    expect(credential).toHaveBeenCalledTimes(2);
  });

  const errorOf = async (error: ConnectError) => caught(petstoreOf({ deletePet: failing(error) }).pets.delete(1));

  test("say what is wrong with which field", async () => {
    const invalid = failure("VALIDATION_FAILED", Code.InvalidArgument, { "x-request-id": "r-1" });
    const violations = [{ field: { elements: [{ fieldName: "pet" }, { fieldName: "category_id" }] }, message: "is 0" }];
    invalid.details.push({ desc: ViolationsSchema, value: create(ViolationsSchema, { violations }) });
    expect(await errorOf(invalid)).toMatchObject({
      code: "VALIDATION_FAILED",
      status: 400,
      message: "It went wrong.",
      advice: "Correct the request.",
      requestId: "r-1",
      violations: [{ field: "categoryId", message: "is 0" }],
    });
  });

  test("have the status that the contract gives their code, and advice", async () => {
    for (const value of ErrorReasonSchema.values.slice(1)) {
      const { httpStatus, grpcCode } = getOption(value, annotation);
      const grpc = codeFromString(grpcCode.toLowerCase());
      if (grpc === undefined) continue; // of HTTP alone
      const code = value.localName;
      expect(await errorOf(failure(code, grpc, { "retry-after": "60" }))).toMatchObject({
        code,
        status: httpStatus,
        advice: expect.stringMatching(/\.$/),
      });
    }
  });

  test.each([
    ["a reason of a later version", failure("PET_ASLEEP", Code.FailedPrecondition), "PET_ASLEEP", 409],
    ["somebody else's reason", failure("PET_NOT_FOUND", Code.NotFound, {}, "elsewhere"), "UNREACHABLE", 0],
    ["no reason", new ConnectError("Bad Gateway", Code.Unavailable), "UNREACHABLE", 0],
    ["no time", new ConnectError("the operation timed out", Code.DeadlineExceeded), "DEADLINE_EXCEEDED", 504],
  ])("of %s", async (_, error, code, status) => {
    expect(await errorOf(error)).toMatchObject({ code, status });
  });

  test("of a place where nobody is", async () => {
    const petstore = createPetstore({ baseUrl: "http://127.0.0.1:1" });
    expect((await caught(petstore.pets.delete(1))).code).toBe("UNREACHABLE");
  });

  test("are known by another copy of the package", () => {
    expect(Object.assign(new Error(), { name: "PetstoreError" })).toBeInstanceOf(PetstoreError);
    for (const other of [new Error(), undefined, null, "PetstoreError"])
      expect(other instanceof PetstoreError).toBe(false);
  });
});

test("each attempt asks for the credential, and has all headers", async () => {
  const sent: string[][] = [];
  const answer = inTurn(busy(), { pet: { id: 1n } });
  let made = 0;
  const getPet = (_: unknown, { requestHeader }: HandlerContext) => {
    sent.push(["authorization", "x-shop", "x-till"].map((name) => requestHeader.get(name) ?? ""));
    return answer();
  };
  const transport = createRouterTransport(({ service }) => service(PetService, { getPet }));
  const options = { transport, credential: () => `key-${++made}`, headers: { "X-Shop": "1", "X-Till": "1" } };
  await createPetstore(options).pets.get(1, { headers: { "X-Till": "2" } });
  expect(sent).toEqual([
    ["Bearer key-1", "1", "2"],
    ["Bearer key-2", "1", "2"],
  ]);
});

test("a call whose credential does not come ends with its time, or with its signal", async () => {
  const never = () => expect.unreachable("it was sent");
  const credential = () => new Promise<string>(() => {});
  const { pets } = createPetstore({ transport: { unary: never, stream: never }, credential });
  expect(await caught(pets.get(1, { timeout: 1 }))).toMatchObject({ code: "DEADLINE_EXCEEDED", status: 504 });
  const gone = new AbortController();
  const call = pets.get(1, { signal: gone.signal, timeout: 0 });
  gone.abort();
  expect((await caught(call)).code).toBe("CANCELLED");
});

test("what waiting for its credential took is no more of a call's time", async () => {
  const asked: unknown[] = [];
  const call = async (...[, , ms]: unknown[]) => {
    asked.push(ms);
    throw failure("PET_NOT_FOUND", Code.NotFound);
  };
  let now = 0;
  const credential = async () => {
    now += 300;
    return "psk_1";
  };
  const sleep = () => new Promise<void>(() => {});
  const options = { transport: { unary: call, stream: call } as never, credential };
  const { pets } = petstoreWith(options, { clock: () => now, random: () => 0, sleep });
  await caught(pets.get(1, { timeout: 1_000 }));
  expect(asked).toEqual([700]);
});

test("records are plain, requests name what they change, and a record can be given as it is", async () => {
  const asked: unknown[] = [];
  const order = create(OrderSchema, {
    id: 7n,
    petId: 1n,
    shipDate: { seconds: 1_800_000_000n, nanos: 120_000 },
    complete: false,
    etag: '"1"',
  });
  const answer = (request: object) => {
    asked.push(request);
    return { order };
  };
  const { orders } = createPetstore({
    transport: createRouterTransport(({ service }) => service(OrderService, { updateOrder: answer, getOrder: answer })),
  });
  const record = await orders.get(7);
  expect(JSON.parse(JSON.stringify(record))).toEqual({
    id: 7,
    petId: 1,
    shipDate: "2027-01-15T08:00:00.000120Z",
    complete: false,
    etag: '"1"',
  });
  asked.length = 0;
  await orders.update(7, { complete: true, shipDate: null, quantity: undefined }, { ifMatch: record.etag });
  await orders.replace(7, { ...record, complete: true });
  await orders.update(7, record);
  const shipDate = { seconds: 1_800_000_000n, nanos: 120_000 };
  expect(asked).toMatchObject([
    { orderId: 7n, order: { complete: true }, updateMask: { paths: ["ship_date", "complete"] }, etag: '"1"' },
    { orderId: 7n, order: { petId: 1n, shipDate, complete: true, etag: "" } },
    { orderId: 7n, order: { petId: 1n, complete: false }, updateMask: { paths: ["pet_id", "ship_date", "complete"] } },
  ]);
  expect(asked[0]).not.toHaveProperty("order.shipDate");
  expect(asked[1]).not.toHaveProperty("order.id");
  expect(asked[1]).not.toHaveProperty("updateMask");
});

test("what is of a record and can't be set is ignored", async () => {
  const asked: unknown[] = [];
  const item = { petId: 1n, quantity: 2, status: PetStatus.AVAILABLE };
  const updateInventory = (request: object) => {
    asked.push(request);
    return { item };
  };
  const { inventory } = createPetstore({
    transport: createRouterTransport(({ service }) => service(InventoryService, { updateInventory })),
  });
  const record = await inventory.update(1, { quantity: 2 });
  expect(await inventory.replace(1, record)).toEqual({ petId: 1, quantity: 2, status: "available", etag: "" });
  expect(asked[1]).toMatchObject({ petId: 1n, inventory: { quantity: 2 } });
});

test.each([
  ["2027-01-15T08:00:00Z", undefined],
  ["2027-01-15T09:30:00.5+01:30", "2027-01-15T08:00:00.500Z"],
  ["0001-01-01T00:00:00Z", undefined],
  ["9999-12-31T23:59:59.999999999Z", undefined],
  [new Date("2027-01-15T08:00:00.005Z"), "2027-01-15T08:00:00.005Z"],
])("the time %s is kept", async (shipDate: string | Date, told: string | Date = shipDate) => {
  const createOrder = ({ order }: CreateOrderRequest) => ({ order: { ...order, id: 1n } as never });
  const transport = createRouterTransport(({ service }) => service(OrderService, { createOrder }));
  expect((await createPetstore({ transport }).orders.create({ shipDate })).shipDate).toBe(told);
});
