import { create, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { Full, Overloaded, Unavailable } from "@petstore/store/port";
import { validate } from "connect-transcoder/validation";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import {
  CategoryService,
  UpdateCategoryRequestSchema,
} from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { ErrorReasonSchema } from "../../../proto/gen/petstore/common/v1/error_reason_pb.ts";
import { OrderInternalService } from "../../../proto/gen/petstore/internal/v1/order_internal_service_pb.ts";
import { UpdateOrderRequestSchema } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { storeFailureOf } from "../../../services/observed-store.ts";
import { DomainError } from "../../../services/records/errors.ts";
import { compileLibrary, serviceOf } from "../../transcoder/fixtures/compile.ts";
import { CALLER_HEADER, type Call, SECRET_HEADER, SEEN_HEADER } from "../call.ts";
import { createErrorTranslation } from "../errors.ts";
import { createDispatcher } from "./dispatcher.ts";
import { type Handlers, implement } from "./handlers.ts";

const { toRpcError } = createErrorTranslation(errors, storeFailureOf);
const secret = "a secret that is long enough";
const method = OrderInternalService.method.resolveReservations;
type Handle = Handlers<typeof OrderInternalService>["resolveReservations"];

function invoke(
  handle: Handle,
  headers: Record<string, string> = {},
  { reserved = 0, ...options }: { timeoutMs?: number; reserved?: number; signal?: AbortSignal } = {},
  asked: DescMethodUnary = method,
) {
  const lines: { level: number; msg: string; err?: { message: string } }[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(JSON.parse(line)) });
  const handlers = new Proxy({}, { get: () => handle }) as never;
  const dispatcher = createDispatcher([implement(asked.parent, handlers)], {
    deps: { ...realTime, log },
    secret,
    errors,
    maxTimeoutMs: 5_000,
  });
  const request = create(asked.input, { reservations: Array(reserved).fill({ orderId: 1n, petId: 1n }) });
  const fields = new Headers({ [SECRET_HEADER]: secret, ...headers });
  const incoming = { timeoutMs: undefined, ...options, headers: fields };
  const answer = dispatcher.invoke(asked, request, incoming);
  return { answer, failure: answer.then(() => undefined, ConnectError.from), lines };
}

describe("what a handler is told", () => {
  const callOf = async (headers: Record<string, string>, timeoutMs?: number) => {
    let seen: Call | undefined;
    const handle: Handle = (_, call) => {
      seen = call;
      return {};
    };
    await invoke(handle, headers, timeoutMs === undefined ? {} : { timeoutMs }).answer;
    return seen as Call;
  };

  test("a request without an id is called as its trace", async () => {
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    expect((await callOf({ traceparent: `00-${trace}-00f067aa0ba902b7-01` })).requestId).toBe(trace);
  });

  test("a sane request id is taken over, any other is replaced", async () => {
    expect((await callOf({ "x-request-id": "a:b/1" })).requestId).toBe("a:b/1");
    expect((await callOf({ "x-request-id": "a b" })).requestId).toMatch(/^[\da-f]{32}$/);
    expect((await callOf({})).requestId).toMatch(/^[\da-f]{32}$/);
  });

  test("the deadline is the caller's, but never beyond the longest allowed", async () => {
    for (const [asked, allowed] of [
      [2_000, 2_000],
      [60_000, 5_000],
      [undefined, 5_000],
    ] as const) {
      const before = realTime.clock();
      const { deadline } = await callOf({}, asked);
      expect(deadline).toBeGreaterThanOrEqual(before + allowed);
      expect(deadline).toBeLessThanOrEqual(realTime.clock() + allowed);
    }
  });

  test("the caller is believed from the petstore's own processes only", async () => {
    expect((await callOf({ [CALLER_HEADER]: "ann" })).caller).toBe("ann");
    const { failure } = invoke(() => ({}), { [SECRET_HEADER]: "a guess", [CALLER_HEADER]: "ann" });
    expect((await failure)?.code).toBe(Code.PermissionDenied);
    const deps = { ...realTime, log: pino({ level: "silent" }) };
    const { admit } = createDispatcher([], { deps, secret, errors });
    const getPet = PetService.method.getPet;
    expect(admit(getPet, new Headers({ [CALLER_HEADER]: "ann" }))).toEqual({ id: "anonymous" });
    expect(admit(getPet, new Headers({ [CALLER_HEADER]: "ann", [SECRET_HEADER]: "a guess" }))).toEqual({
      id: "anonymous",
    });
    expect(admit(getPet, new Headers({ [CALLER_HEADER]: "ann", [SECRET_HEADER]: secret }))).toEqual({ id: "ann" });
  });
});

describe("what was seen", () => {
  /** A handler that finds a later state than its caller has seen. */
  const reading: Handle = (_, { progress }) => {
    if (progress.seen !== undefined) progress.seen = `${progress.seen}+`;
    return {};
  };
  const failing: Handle = (request, call) => {
    reading(request, call);
    throw new DomainError("PET_NOT_FOUND", "it is gone");
  };

  test("a peer that asks for it is told, with an answer and with a refusal", async () => {
    const headers = { [SEEN_HEADER]: "db:05" };
    expect((await invoke(reading, headers).answer).headers.get(SEEN_HEADER)).toBe("db:05+");
    expect((await invoke(failing, headers).failure)?.metadata.get(SEEN_HEADER)).toBe("db:05+");
  });

  test("a peer that does not ask, or has seen it all, is not", async () => {
    expect((await invoke(reading).answer).headers.has(SEEN_HEADER)).toBe(false);
    expect((await invoke(() => ({}), { [SEEN_HEADER]: "db:05" }).answer).headers.has(SEEN_HEADER)).toBe(false);
  });

  test("no caller from outside is told, or believed", async () => {
    const seen: unknown[] = [];
    const getPet = (_: unknown, call: Call) => {
      seen.push(call.progress.seen);
      return {};
    };
    const handlers = new Proxy({}, { get: () => getPet });
    const deps = { ...realTime, log: pino({ level: "silent" }) };
    const { invoke } = createDispatcher([implement(PetService, handlers as never)], { deps, secret, errors });
    const headers = new Headers({ [SEEN_HEADER]: "db:ff" });
    const { method } = PetService;
    const request = create(method.getPet.input, { petId: 1n });
    const answer = await invoke(method.getPet as never, request, { headers, timeoutMs: undefined });
    expect(answer.headers.has(SEEN_HEADER)).toBe(false);
    expect(seen).toEqual([undefined]);
  });
});

describe("errors", () => {
  test("carry the response headers that the handler has set", async () => {
    const { failure } = invoke((_, { responseHeaders }) => {
      responseHeaders.set("idempotent-replayed", "true");
      throw new DomainError("PET_NOT_FOUND", "it is gone");
    });
    expect((await failure)?.metadata.get("idempotent-replayed")).toBe("true");
  });

  test("an internal RPC without the secret is refused before its request is looked at", async () => {
    const { failure } = invoke(() => ({}), { [SECRET_HEADER]: "" }, { reserved: 2000 });
    expect(reasonOf((await failure) as ConnectError)?.reason).toBe("PERMISSION_DENIED");
  });

  test("a request that breaks its rules never reaches the handler", async () => {
    let ran = false;
    const handle: Handle = () => {
      ran = true;
      return {};
    };
    const error = (await invoke(handle, {}, { reserved: 1001 }).failure) as ConnectError;
    expect(reasonOf(error)?.reason).toBe("VALIDATION_FAILED");
    expect(error.rawMessage).toBe("reservations: must contain no more than 1000 item(s)");
    expect(error.findDetails(ViolationsSchema)[0]?.violations[0]?.ruleId).toBe("repeated.max_items");
    expect(ran).toBe(false);
  });

  test("a handler that takes too long is answered for, and goes on", async () => {
    const slow = Promise.withResolvers<void>();
    let finished = false;
    const { failure } = invoke(
      async () => {
        await slow.promise;
        finished = true;
        return {};
      },
      {},
      { timeoutMs: 20 },
    );
    expect(reasonOf((await failure) as ConnectError)?.reason).toBe("DEADLINE_EXCEEDED");
    slow.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(finished).toBe(true);
  });

  test.each<[string, unknown, Code, string]>([
    ["a domain error", new DomainError("PET_NOT_AVAILABLE", "No."), Code.FailedPrecondition, "PET_NOT_AVAILABLE"],
    ["a store in doubt", new Unavailable(true), Code.Unavailable, "UNAVAILABLE"],
    ["a peer's refusal of our request", new ConnectError("x", Code.InvalidArgument), Code.Unavailable, "UNAVAILABLE"],
    ["a peer's bug", new ConnectError("x", Code.Internal), Code.Unavailable, "UNAVAILABLE"],
    ["a peer out of time", new ConnectError("x", Code.DeadlineExceeded), Code.Unavailable, "UNAVAILABLE"],
    ["a bug of ours", new TypeError("at /home/x"), Code.Internal, "INTERNAL"],
  ])("%s", (_, thrown, code, reason) => {
    const error = toRpcError(thrown, { requestId: "r-1" });
    expect([error.code, reasonOf(error)?.reason]).toEqual([code, reason]);
    expect(error.rawMessage).not.toContain("/home");
  });

  test("a store or a peer that gave up because the caller's time was over is out of time, not out of reach", () => {
    for (const thrown of [new Unavailable(false), new ConnectError("x", Code.DeadlineExceeded)])
      expect(reasonOf(toRpcError(thrown, { requestId: "r-1", isLate: true }))?.reason).toBe("DEADLINE_EXCEEDED");
    expect(reasonOf(toRpcError(new Unavailable(false), { requestId: "r-1" }))?.reason).toBe("UNAVAILABLE");
  });

  test("what the store did not even begin is overload, late or not: nothing was done", () => {
    for (const isLate of [true, false])
      expect(
        reasonOf(toRpcError(new Overloaded("one record"), { requestId: "r-1", isLate, writes: true }))?.reason,
      ).toBe("OVERLOADED");
  });

  test("a bug in a write may have come after its effects: the outcome is unknown", () => {
    const error = toRpcError(new TypeError("x"), { requestId: "r-1", writes: true });
    expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unavailable, "UNAVAILABLE"]);
    expect(error.rawMessage).toMatch(/Quote request r-1.*may or may not have happened/);
  });

  test("only what has effects leaves its caller in doubt", async () => {
    const thrown = [
      new Unavailable(true),
      new ConnectError("x", Code.DeadlineExceeded),
      new ConnectError("x", Code.Unavailable),
    ];
    for (const isLate of [false, true])
      for (const one of thrown) {
        const textOf = (writes: boolean) => toRpcError(one, { requestId: "r-1", isLate, writes }).rawMessage;
        expect([textOf(false), textOf(true)]).toEqual([
          expect.stringMatching(/^(?!.*write).* Try again\.$/),
          expect.stringContaining("A write may or may not have happened"),
        ]);
      }
    const read = invoke(() => new Promise(() => {}), {}, { timeoutMs: 200 }, PetService.method.batchGetPets);
    expect((await read.failure)?.rawMessage).toBe("The time for the request ran out. Try again.");
  });

  test("a full disk is told as such", () => {
    const full = new Full(new Error("database or disk is full in /srv/pet.db"));
    const told = toRpcError(full, { requestId: "r-1", writes: true });
    expect(reasonOf(told)?.reason).toBe("UNAVAILABLE");
    expect(told.rawMessage).toMatch(/^The store's disk is full, and takes no changes until there is room\. (?!.*srv)/);
  });

  test("a temporary failure is logged in a line, with what caused it", async () => {
    const { failure, lines } = invoke(() => {
      const cause = new Unavailable(true, new Error("the server has no room"));
      throw new ConnectError("x", Code.Unavailable, undefined, undefined, cause);
    });
    expect((await failure)?.rawMessage).not.toContain("room");
    const cause = "[unavailable] x: the outcome of the write is unknown: the server has no room";
    expect(lines).toEqual([expect.objectContaining({ level: 40, cause })]);
  });

  test("a bug is logged with its cause and told without it", async () => {
    const { failure, lines } = invoke(() => {
      throw new TypeError("secret/path exploded");
    });
    const error = (await failure) as ConnectError;
    expect(error.rawMessage).toMatch(/^Something went wrong in the petstore\. Quote request [\da-f]{32}/);
    expect(lines).toEqual([
      expect.objectContaining({ level: 50, err: expect.objectContaining({ message: "secret/path exploded" }) }),
    ]);
  });

  test.each([
    ["an operator is warned of it", false, 40],
    ["unless its caller has left", true, 20],
  ])("a store that does not answer: %s", async (_, hasLeft, level) => {
    const caller = new AbortController();
    const handle: Handle = () => {
      if (hasLeft) caller.abort();
      throw new DomainError("UNAVAILABLE", "the store does not answer");
    };
    const { failure, lines } = invoke(handle, {}, { signal: caller.signal }, PetService.method.batchGetPets);
    expect((await failure)?.code).toBe(Code.Unavailable);
    expect(lines.map((line) => line.level)).toEqual([level]);
  });

  test("every reason of the catalogue that RPCs can have has a gRPC code", () => {
    const httpOnly =
      /^(ROUTE_NOT_FOUND|METHOD_NOT_ALLOWED|MISDIRECTED_REQUEST|NOT_ACCEPTABLE|URI_TOO_LONG|HEADERS_TOO_LARGE)$/;
    for (const { localName, number } of ErrorReasonSchema.values) {
      if (number === 0 || httpOnly.test(localName) || localName === "UPSTREAM_ERROR") continue;
      expect(toRpcError(new DomainError(localName as never, "x"), { requestId: "" }).code, localName).not.toBe(
        Code.Unknown,
      );
    }
  });
});

test("more calls than a process can work on are refused, but none that finishes what has begun", async () => {
  const log = pino({ level: "silent" });
  const held = Promise.withResolvers<void>();
  const hold = async () => {
    await held.promise;
    return {};
  };
  const implementations = [
    implement(OrderInternalService, { resolveReservations: hold }),
    implement(CategoryService, new Proxy({} as Handlers<typeof CategoryService>, { get: () => hold })),
  ];
  const dispatcher = createDispatcher(implementations, { deps: { ...realTime, log }, secret, errors, maxCalls: 3 });
  const call = (asked: DescMethodUnary, timeoutMs: number) => {
    const message = create(asked.input, { reservations: [], limit: 1 } as never);
    const answer = dispatcher.invoke(asked, message, { headers: new Headers({ [SECRET_HEADER]: secret }), timeoutMs });
    return answer.then(
      () => "answered",
      (error) => reasonOf(ConnectError.from(error))?.reason,
    );
  };
  const { listCategories } = CategoryService.method;
  // Their callers have gone, and they are still worked on.
  for (let i = 0; i < 3; i++) expect(await call(listCategories, 1)).toBe("DEADLINE_EXCEEDED");
  expect(await call(listCategories, 5_000)).toBe("OVERLOADED");
  const internal = call(method, 5_000);
  held.resolve();
  expect(await internal).toBe("answered");
  expect(await call(listCategories, 5_000)).toBe("answered");
});

test("a call that comes before its rules can be judged waits for them", async () => {
  const library = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
  const handlers = Object.fromEntries(library.methods.map(({ localName }) => [localName, () => ({})]));
  const options = { deps: { ...realTime, log: pino({ level: "silent" }) }, secret, errors };
  const dispatcher = createDispatcher([implement(library, handlers as never)], options);
  const { addBook } = library.method;
  const call = (init: object) =>
    dispatcher.invoke(addBook as never, create((addBook as DescMethodUnary).input, init as never), {
      headers: new Headers(),
      timeoutMs: undefined,
    });
  await expect(call({ shelf: 1n })).rejects.toThrow("book: value is required");
  await expect(call({ book: { tags: [""] } })).rejects.toThrow("book.tags[0]: must be at least 1 characters");
  await expect(call({ book: { isbn: 1n } })).resolves.toBeDefined();
});

describe("update masks", () => {
  const paths = (init: MessageInitShape<typeof UpdateCategoryRequestSchema>) =>
    validate(CategoryService.method.updateCategory.input, create(UpdateCategoryRequestSchema, init)).map(
      ({ field, ruleId }) => [field.map((f) => ("name" in f ? f.name : "")).join("."), ruleId],
    );

  test("without a mask every rule counts", () => {
    expect(paths({ category: {} })).toEqual([["category.name", "required"]]);
  });
  test("with a mask only what it names counts", () => {
    expect(paths({ category: {}, updateMask: { paths: [] } })).toEqual([]);
    expect(paths({ category: { name: " ", description: "x" }, updateMask: { paths: ["description"] } })).toEqual([]);
    expect(paths({ category: { name: " " }, updateMask: { paths: ["name"] } })).toEqual([
      ["category.name", "string.not_blank"],
    ]);
  });
  test("a field that is named but absent is removed, where it can be", () => {
    expect(paths({ category: {}, updateMask: { paths: ["description"] } })).toEqual([]);
    expect(paths({ category: {}, updateMask: { paths: ["name"] } })).toEqual([["category.name", "required"]]);
  });
  test("it must name fields that a caller can set", () => {
    expect(paths({ category: {}, updateMask: { paths: ["nmae"] } })).toEqual([["update_mask", "field_mask.in"]]);
    const order = create(UpdateOrderRequestSchema, { order: {}, updateMask: { paths: ["id"] } });
    expect(validate(UpdateOrderRequestSchema, order)[0]?.message).toBe(
      "must name fields among pet_id, quantity, ship_date, complete",
    );
  });
});
