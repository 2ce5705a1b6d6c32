import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createRouterTransport,
  type HandlerContext,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test, vi } from "vitest";
import { isPetstoreError, type PetstoreError } from "./errors.ts";
import { failure } from "./fixtures/failure.ts";
import { ViolationsSchema } from "./gen/buf/validate/validate_pb.ts";
import {
  type CreatePetRequest,
  type ListPetsRequest,
  type ListPetsResponseSchema,
  PetService,
} from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { createPetstore, petstoreWith } from "./petstore.ts";

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

const caught = (call: Promise<unknown>): Promise<PetstoreError> =>
  call.then(
    () => expect.unreachable("it succeeded"),
    (error) => (isPetstoreError(error) ? error : expect.unreachable(`${error}`)),
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
    const ids: bigint[] = [];
    for await (const { id } of petstore.pets.all({ categoryId: 7n })) ids.push(id);
    expect(ids).toEqual([1n, 2n, 3n, 4n, 5n, 6n]);
    expect(asked.map(({ categoryId, pageToken }) => [categoryId, pageToken])).toEqual([
      [7n, ""],
      [7n, "2"],
      [7n, "4"],
    ]);
  });

  test("who stops reading asks for no more", async () => {
    asked.length = 0;
    for await (const page of petstore.pets.pages()) {
      expect(page).toHaveLength(2);
      break;
    }
    expect(asked).toHaveLength(1);
  });
});

describe("what is safe to repeat is repeated", () => {
  test("reads", async () => {
    const petstore = petstoreOf({ getPet: inTurn(busy(), busy(), busy(), { pet: { id: 1n } }) });
    expect((await petstore.pets.getPet({ petId: 1n })).pet?.id).toBe(1n);
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
    await petstore.pets.createPet({ pet: { name: "Rex" } });
    await petstore.pets.createPet({ pet: { name: "Max" } });
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
    expect((await caught(pets.createPet({ pet: { name: "Rex" } }))).reason).toBe(known);
  });

  test("the caller's own key is kept", async () => {
    const createPet = vi.fn((_: CreatePetRequest) => ({ pet: { id: 1n } }));
    await petstoreOf({ createPet }).pets.createPet({ pet: { name: "Rex" }, requestId: "tuesday" });
    expect(createPet.mock.calls[0]?.[0].requestId).toBe("tuesday");
  });

  test("changes are not, unless they were refused for their rate", async () => {
    const answers = [failure("RATE_LIMITED", Code.ResourceExhausted, { "retry-after": "0" }), busy()];
    const error = await caught(petstoreOf({ updatePet: failing(...answers) }).pets.updatePet({ petId: 1n }));
    expect(error.reason).toBe("UNAVAILABLE");
  });

  test("changes and deletions are not by a member that their messages have not", async () => {
    const [updatePet, deletePet] = [vi.fn(failing(busy())), vi.fn(failing(busy()))];
    const { pets } = petstoreOf({ updatePet, deletePet });
    const stray = { petId: 1n, requestId: "tuesday" };
    for (const change of [pets.updatePet(stray), pets.deletePet(stray)])
      expect((await caught(change)).reason).toBe("UNAVAILABLE");
    for (const asked of [updatePet, deletePet]) expect(asked).toHaveBeenCalledTimes(1);
  });

  test("what would be the same again is not", async () => {
    const getPet = vi.fn(failing(failure("PET_NOT_FOUND", Code.NotFound)));
    expect((await caught(petstoreOf({ getPet }).pets.getPet({ petId: 1n }))).reason).toBe("PET_NOT_FOUND");
    expect(getPet).toHaveBeenCalledTimes(1);
  });

  test("four times, and no more", async () => {
    const getPet = vi.fn(failing(busy(), busy(), busy(), busy()));
    expect((await caught(petstoreOf({ getPet }).pets.getPet({ petId: 1n }))).reason).toBe("UNAVAILABLE");
    expect(getPet).toHaveBeenCalledTimes(4);
  });

  test("not when the pause is longer than the call may take", async () => {
    const getPet = vi.fn(failing(failure("OVERLOADED", Code.Unavailable, { "retry-after": "60" })));
    const error = await caught(petstoreOf({ getPet }).pets.getPet({ petId: 1n }, { timeoutMs: 30_000 }));
    expect(error.reason === "OVERLOADED" && error.retryAfterMs).toBe(60_000);
    expect(getPet).toHaveBeenCalledTimes(1);
  });

  test.each([
    [undefined, 10_000],
    [1500.5, 1501],
    [3_000_000_000, 99_999_999],
    [Number.POSITIVE_INFINITY, 99_999_999],
    [0, undefined],
    [-1, undefined],
  ])("a limit of %s ms is one of %s for every protocol", async (timeoutMs, said) => {
    const asked: unknown[] = [];
    const call = async (...[, , ms]: unknown[]) => {
      asked.push(ms);
      throw failure("PET_NOT_FOUND", Code.NotFound);
    };
    const { pets } = createPetstore({ transport: { unary: call, stream: call } as never });
    await caught(pets.getPet({ petId: 1n }, timeoutMs === undefined ? {} : { timeoutMs }));
    expect(asked).toEqual([said]);
  });

  test("not when the caller goes in a pause, and what it is told is that", async () => {
    const gone = new AbortController();
    const transport = createRouterTransport(({ service }) => service(PetService, { getPet: failing(busy()) }));
    const sleep = async () => gone.abort();
    const { pets } = petstoreWith({ transport }, { clock: () => 0, random: () => 0, sleep });
    expect((await caught(pets.getPet({ petId: 1n }, { signal: gone.signal }))).reason).toBe("CANCELLED");
  });

  test("over a transport that is of a class, streams too", async () => {
    const routed = createRouterTransport(({ service }) =>
      service(PetService, {
        async *watchPets() {
          yield { resumeToken: "here", response: { case: "heartbeat", value: {} } };
        },
      }),
    );
    class Own {
      unary: Transport["unary"] = (...call) => routed.unary(...call);
      stream(...call: Parameters<Transport["stream"]>) {
        return routed.stream(...call);
      }
    }
    const { pets } = createPetstore({ transport: new Own() as unknown as Transport });
    for await (const { resumeToken } of pets.watchPets({})) expect(resumeToken).toBe("here");
    expect.assertions(1);
  });

  test("not after the caller has gone", async () => {
    const gone = new AbortController();
    const getPet = vi.fn(() => {
      gone.abort();
      throw busy();
    });
    expect((await caught(petstoreOf({ getPet }).pets.getPet({ petId: 1n }, { signal: gone.signal }))).reason).toBe(
      "CANCELLED",
    );
    expect(getPet).toHaveBeenCalledTimes(1);
  });
});

describe("errors", () => {
  test("a request that can't be encoded is told as that, and nothing is sent or tried again", async () => {
    let asked = 0;
    const transport = createConnectTransport({
      baseUrl: "http://127.0.0.1:1",
      httpVersion: "1.1",
      interceptors: [
        (next) => (request) => {
          asked++;
          return next(request);
        },
      ],
    });
    const call = createPetstore({ transport }).orders.createOrder({ order: { petId: 1n, quantity: 1.5 } });
    expect(await caught(call)).toMatchObject({
      reason: "VALIDATION_FAILED",
      violations: [{ field: "", message: expect.stringContaining("quantity") }],
    });
    expect(asked).toBeLessThanOrEqual(1);
  });

  const reasonOf = async (error: ConnectError) =>
    caught(petstoreOf({ deletePet: failing(error) }).pets.deletePet({ petId: 1n }));

  test("say what is wrong with which field", async () => {
    const invalid = failure("VALIDATION_FAILED", Code.InvalidArgument, { "x-request-id": "r-1" });
    const violations = [{ field: { elements: [{ fieldName: "pet" }, { fieldName: "name" }] }, message: "is blank" }];
    invalid.details.push({ desc: ViolationsSchema, value: create(ViolationsSchema, { violations }) });
    const error = await reasonOf(invalid);
    if (error.reason !== "VALIDATION_FAILED") return expect.unreachable(error.reason);
    expect(error.violations).toEqual([{ field: "pet.name", message: "is blank" }]);
    expect(error).toMatchObject({ message: "It went wrong.", requestId: "r-1" });
  });

  test.each([
    ["a reason of a later version", failure("PET_ASLEEP", Code.FailedPrecondition), "UNRECOGNIZED"],
    ["somebody else's reason", failure("PET_NOT_FOUND", Code.NotFound, {}, "elsewhere"), "UNREACHABLE"],
    ["UNSPECIFIED", failure("UNSPECIFIED", Code.Unknown), "UNRECOGNIZED"],
    ["a name that every object has", failure("toString", Code.Unknown), "UNRECOGNIZED"],
    ["no reason", new ConnectError("Bad Gateway", Code.Unavailable), "UNREACHABLE"],
    ["no time", new ConnectError("the operation timed out", Code.DeadlineExceeded), "DEADLINE_EXCEEDED"],
  ])("of %s", async (_, error, reason) => {
    expect((await reasonOf(error)).reason).toBe(reason);
  });

  test("of a place where nobody is", async () => {
    const petstore = createPetstore({ baseUrl: "http://127.0.0.1:1" });
    expect((await caught(petstore.pets.deletePet({ petId: 1n }))).reason).toBe("UNREACHABLE");
  });
});

test("each attempt asks for the credential", async () => {
  const sent: (string | null)[] = [];
  const answer = inTurn(busy(), { pet: { id: 1n } });
  let made = 0;
  const petstore = petstoreOf(
    {
      getPet(_: unknown, { requestHeader }: HandlerContext) {
        sent.push(requestHeader.get("authorization"));
        return answer();
      },
    },
    () => `key-${++made}`,
  );
  await petstore.pets.getPet({ petId: 1n });
  expect(sent).toEqual(["Bearer key-1", "Bearer key-2"]);
});
