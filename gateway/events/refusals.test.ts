/** GET /events: refused requests, and the scopes that callers need. */
import { createAuthentication } from "@petstore/rpc/auth/authentication";
import { InvalidCredential } from "@petstore/rpc/auth/credentials";
import { describe, expect, test } from "vitest";
import { errors, rpcError } from "#errors";
import { authOf } from "../auth.ts";
import { begun, NAMES, played, start } from "./fixtures/reading.ts";

describe("what is wrong", () => {
  test.each([
    ["?types=dog", "INVALID_QUERY", "types: must be one of pet, category, order, inventory"],
    ["?types=unspecified", "INVALID_QUERY", "types: must be one of pet, category, order, inventory"],
    ["?types=", "INVALID_QUERY", "types: must not be empty"],
    ["?petId=0", "INVALID_QUERY", "petId[0]: must be greater than 0"],
    ["?petId=9223372036854775808", "INVALID_QUERY", "petId: must be from 1 to 9223372036854775807"],
    ["?snapshot=1", "INVALID_QUERY", "snapshot: must be true or false"],
    [
      "?lastEventId=x",
      "INVALID_QUERY",
      "lastEventId: must be the id of an event as it was received. Begin again without it.",
    ],
    [`?lastEventId=${"x".repeat(6001)}`, "INVALID_QUERY", "lastEventId: must be at most 6000 characters"],
    [`?petId=${"1,".repeat(100)}1`, "INVALID_QUERY", "petId: must contain no more than 100 item(s)"],
    [`?types=${"pet,".repeat(100)}pet`, "INVALID_QUERY", "types: must contain no more than 100 item(s)"],
    ["?snapshot=true&snapshot=true", "INVALID_QUERY", "snapshot: must not be given twice"],
  ])("with %s", async (query, code, message) => {
    await start();
    expect(JSON.parse((await played.gateway.call(`/events${query}`)).text)).toEqual({ code, message, status: 400 });
  });

  test.each([
    ["x", "Last-Event-ID: must be the id of an event as it was received. Begin again without it."],
    ["x".repeat(6001), "Last-Event-ID: must be at most 6000 characters"],
  ])("with the id %.9s in the header, which is named", async (id, message) => {
    await start();
    const { text } = await played.gateway.call("/events?lastEventId=y", { headers: { "last-event-id": id } });
    expect(JSON.parse(text)).toEqual({ code: "INVALID_HEADER", message, status: 400 });
  });

  test("with an id from too long ago is 410, and all that was begun is ended", async () => {
    await start();
    played.services.refusals.set("order", () => rpcError("EVENTS_EXPIRED", "Begin again with a snapshot."));
    const answer = played.gateway.call("/events");
    const pet = await played.services.watched("pet");
    const { status, text } = await answer;
    expect([status, JSON.parse(text).code]).toEqual([410, "EVENTS_EXPIRED"]);
    await pet.left;
  });

  test("with a place that a service does not take is told of by the name that callers know", async () => {
    await start();
    played.services.refusals.set("pet", () => rpcError("VALIDATION_FAILED", "resume_token: is of another snapshot"));
    expect(JSON.parse((await played.gateway.call("/events?types=pet")).text)).toMatchObject({
      code: "INVALID_QUERY",
      message: "lastEventId: is of another snapshot",
    });
  });
});

describe("a caller who is asked", () => {
  const identities = new Map<string, readonly string[]>([
    ["pets", ["pets:read"]],
    ["most", ["pets:read", "orders:read", "inventory:read"]],
    ["all", ["*"]],
  ]);
  const tokens = (text: string) => {
    const scopes = identities.get(text);
    if (!scopes) throw new InvalidCredential("unknown");
    return { id: text, scopes: new Set(scopes) };
  };
  const auth = authOf(createAuthentication({ errors, realm: "petstore", tokens }));
  const asked = (query: string, who?: string) =>
    played.gateway.call(`/events${query}`, { headers: who === undefined ? {} : { authorization: `Bearer ${who}` } });

  test.each([
    ["", undefined, 401, /^Bearer realm="petstore"$/],
    ["", "nobody", 401, /error="invalid_token"/],
    ["", "pets", 403, /error="insufficient_scope", scope="categories:read"/],
    ["?types=pet,order", "pets", 403, /scope="orders:read"/],
    ["?types=pet&types=%6frder", "pets", 403, /scope="orders:read"/],
    ["?types=pet&t%79pes=inventory", "pets", 403, /scope="inventory:read"/],
    ["?petId=7", "pets", 403, /scope="orders:read"/],
    ["", "most", 403, /scope="categories:read"/],
    ["?types=dog", "pets", 403, /scope="categories:read"/],
    ["?types=%", "pets", 403, /scope="categories:read"/],
    ["?types=unspecified", "all", 400, /^$/],
  ])("for %s as %s: %d", async (query, who, status, challenge) => {
    await start({ auth });
    const answer = await asked(query, who);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("www-authenticate") ?? "").toMatch(challenge);
  });

  test.each([
    ["?types=pet", "pets", ["pet"]],
    ["?petId=7", "most", ["pet", "order", "inventory"]],
    ["", "all", NAMES],
  ] as const)("may watch %s as %s", async (query, who, names) => {
    await start({ auth });
    const { reader, pet } = await begun(`/events${query}`, { authorization: `Bearer ${who}` }, names);
    expect(reader.response.status).toBe(200);
    expect(pet.headers.get("x-internal-caller")).toBe(who);
  });
});
