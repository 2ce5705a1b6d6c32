import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { OrderInternalService } from "../../../proto/gen/petstore/internal/v1/order_internal_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { LibraryService } from "../fixtures/library.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { Health } from "../gen/health/v1/health_pb.ts";
import { createAuthentication, grants } from "./authentication.ts";
import { InvalidCredential } from "./credentials.ts";

/** "psk_ann:pets:read" is ann's, and was granted pets:read. */
const apiKeys = (text: string) => {
  const [, id = "", ...scope] = text.split(/[_:]/);
  if (id === "mallory") throw new InvalidCredential("Not known here.");
  return { id, scopes: new Set(scope.length > 0 ? [scope.join(":")] : []) };
};
const authentication = createAuthentication({ errors, realm: "petstore", apiKeys });
const { listPets, createPet } = PetService.method;

async function admit(
  apiKey: string | undefined,
  method: Parameters<typeof authentication.admit>[1] = listPets,
  more = {},
) {
  try {
    return await authentication.admit({ apiKey, authorization: undefined, ...more }, method);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return [reasonOf(error)?.reason, error.metadata.get("www-authenticate")];
  }
}
const denied = (scope: string) => [
  "PERMISSION_DENIED",
  `Bearer realm="petstore", error="insufficient_scope", scope="${scope}"`,
];
const unknown = ["UNAUTHENTICATED", 'Bearer realm="petstore", error="invalid_token"'];

test("who has the scope may call, and is named", async () => {
  expect(await admit("psk_ann:pets:read")).toMatchObject({ id: "ann" });
  expect(await admit("psk_ann:pets:write", createPet)).toMatchObject({ id: "ann" });
  expect(await admit("psk_ann:*", createPet)).toMatchObject({ id: "ann" });
});

test("without the scope it is PERMISSION_DENIED, with what is missing", async () => {
  expect(await admit("psk_ann:pets:read", createPet)).toEqual(denied("pets:write"));
  expect(await admit("psk_ann:orders:*", createPet)).toEqual(denied("pets:write"));
  expect(await admit("psk_ann")).toEqual(denied("pets:read"));
  const thrown = authentication.admit({ apiKey: "psk_ann", authorization: undefined }, createPet);
  await expect(thrown).rejects.toThrow("scope pets:write");
});

test("without a credential, and with a wrong one, it is UNAUTHENTICATED", async () => {
  expect(await admit(undefined)).toEqual(["UNAUTHENTICATED", 'Bearer realm="petstore"']);
  expect(await admit("psk_mallory")).toEqual(unknown);
  expect(await admit("psk_ann:*", listPets, { authorization: "Bearer psk_ann:*" })).toEqual(unknown);
  // No tokens are accepted here.
  expect(await admit(undefined, listPets, { authorization: "Bearer a.b.c" })).toEqual(unknown);
});

test("what the contract says nothing of, nobody may call, and what is internal neither", async () => {
  const never = ["PERMISSION_DENIED", 'Bearer realm="petstore", error="insufficient_scope"'];
  expect(await admit("psk_ann:*", LibraryService.method.getBook)).toEqual(never);
  expect(await admit("psk_ann:*", OrderInternalService.method.resolveReservations)).toEqual(never);
});

test("health answers everybody, reflection whoever is known", async () => {
  expect(await admit(undefined, Health.method.check)).toEqual({ id: "anonymous" });
  expect(await admit("psk_mallory", Health.method.watch)).toEqual({ id: "anonymous" });
  expect(await admit("psk_ann", ServerReflection.method.serverReflectionInfo)).toMatchObject({ id: "ann" });
  expect(await admit(undefined, ServerReflection.method.serverReflectionInfo)).toEqual([
    "UNAUTHENTICATED",
    'Bearer realm="petstore"',
  ]);
});

describe("what lasts", () => {
  const shown = { apiKey: "psk_ann", authorization: undefined };
  /** Ann's, as long as `judge` throws nothing. */
  function open(judge: () => void) {
    const apiKeys = () => {
      judge();
      return { id: "ann", scopes: new Set(["*"]) };
    };
    const asked = createAuthentication({ errors, realm: "petstore", apiKeys });
    const refusals: string[] = [];
    const leave = asked.recheck(shown, listPets, ({ rawMessage }) => void refusals.push(rawMessage));
    return { ...asked, refusals, leave };
  }
  const revoked = () => {
    throw new InvalidCredential("Revoked.");
  };

  test("ends when it would not be admitted any more, once", async () => {
    let judge = () => {};
    const { recheckAll, refusals } = open(() => judge());
    await recheckAll();
    expect(refusals).toEqual([]);
    judge = revoked;
    await Promise.all([recheckAll(), recheckAll()]);
    await recheckAll();
    expect(refusals).toEqual(["Revoked."]);
  });

  test("is not asked for when it is over", async () => {
    let count = 0;
    const { recheckAll, leave } = open(() => count++);
    await recheckAll();
    leave();
    await recheckAll();
    expect(count).toBe(1);
  });

  test.each([
    ["the issuer is away", errors.rpcError("UNAVAILABLE", "Not now.")],
    ["something is wrong here", new TypeError("wrong")],
  ])("goes on while %s, and does not keep others from being asked for", async (_, error) => {
    let judge: () => void = () => {
      throw error;
    };
    const { recheckAll, recheck, refusals } = open(() => judge());
    let others = 0;
    recheck({ apiKey: "psk_no", authorization: "twice" }, listPets, () => others++);
    await recheckAll();
    expect([refusals, others]).toEqual([[], 1]);
    judge = revoked;
    await recheckAll();
    expect(refusals).toEqual(["Revoked."]);
  });
});

describe("what is granted", () => {
  test.each([
    ["pets:read", "pets:read", true],
    ["pets:*", "pets:read", true],
    ["*", "pets:read", true],
    ["pets:write", "pets:read", false],
    ["pets", "pets:read", false],
    ["orders:*", "pets:read", false],
    ["pet:*", "pets:read", false],
    ["*:read", "pets:read", false],
    ["pet:*", "pets", false],
    ["", "pets:read", false],
  ])("%s for %s: %s", (granted, scope, is) => {
    expect(grants(new Set([granted]), scope)).toBe(is);
  });
});
