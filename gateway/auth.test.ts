/** Credentials as they come over the wire, at both endpoints, and what callers are told. */
import { createAuthentication, type Verify } from "@petstore/rpc/auth/authentication";
import { InvalidCredential } from "@petstore/rpc/auth/credentials";
import { callerAddress } from "@petstore/rpc/http/hosts";
import { describe, expect, onTestFinished, test } from "vitest";
import { errors } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { authOf } from "./auth.ts";
import { recordIn, sendRaw, startGateway, testLimits } from "./fixtures/gateway.ts";
import { limitFailedCredentials } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

/** Who is called "ann" shows "ann". */
const byName: Verify = (id) => {
  if (!/^[a-z]+$/.test(id)) throw new InvalidCredential("That is no name.");
  return { id, scopes: new Set(["pets:read"]) };
};

/** A gateway whose callers are known by `verify`. `callers` is what the service was told of them. */
async function start(verify = byName, clock = () => 0) {
  const callers: (string | null)[] = [];
  const transport = {
    unary: async (_method: unknown, _signal: unknown, _ms: unknown, headers: Record<string, string>) => {
      callers.push(headers["x-internal-caller"] ?? null);
      throw errors.rpcError("PET_NOT_FOUND" as never, "There is no such pet.");
    },
  };
  const services = [{ desc: PetService, transport: transport as never }];
  const gateway = await startGateway(
    PetService,
    {},
    {
      services,
      plugins: [rpcEndpoint({ basePath: "", services, limits: { ...testLimits, rpcBytes: 2 ** 20 }, clock: Date.now })],
      auth: authOf(
        createAuthentication({ errors, realm: "petstore", apiKeys: verify, tokens: verify }),
        limitFailedCredentials(callerAddress([]), { clock }),
      ),
    },
  );
  onTestFinished(() => gateway.app.close());
  return { ...gateway, callers };
}
const request = (target: string, ...headers: string[]) =>
  `POST ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n` +
  `content-length: 2\r\n${headers.map((header) => `${header}\r\n`).join("")}\r\n{}`;
const http = (...headers: string[]) => request("/pets/1", ...headers).replace("POST", "GET");
const rpc = (...headers: string[]) => request(`/${PetService.typeName}/GetPet`, ...headers);

test.each(Object.entries({ http, rpc }))("one credential names the caller (%s)", async (_, made) => {
  const { port, callers } = await start();
  expect(await sendRaw(port, made("authorization: Bearer ann"))).toMatch(/^HTTP\/1.1 404 /);
  expect(callers).toEqual(["ann"]);
});

test.each(
  Object.entries({ http, rpc }).flatMap(([name, made]) =>
    [
      ["authorization: Bearer ann", "Authorization: Bearer bob"],
      ["authorization: Bearer ann", "authorization: Bearer ann"],
      ["authorization: Bearer ann", "x-api-key: ann"],
      ["x-api-key: ann", "x-api-key: bob"],
      ["authorization:"],
    ].map((headers) => [name, headers, made] as const),
  ),
)("%s: %j is no credential", async (_, headers, made) => {
  const { port, callers } = await start();
  const answer = await sendRaw(port, made(...headers));
  expect(answer).toMatch(/^HTTP\/1.1 401 /);
  expect(answer).toMatch(/\r\nwww-authenticate: Bearer realm="petstore", error="invalid_token"\r\n/i);
  expect(callers).toEqual([]);
});

test("credentials that can't be judged now are 503, and not the caller's fault", async () => {
  const { port } = await start(() => {
    throw errors.rpcError("UNAVAILABLE", "The keys can't be fetched now. Try again.");
  });
  const answer = await sendRaw(port, http("authorization: Bearer ann"));
  expect(recordIn(answer)).toEqual({
    code: "UNAVAILABLE",
    message: "The keys can't be fetched now. Try again.",
    status: 503,
  });
  expect(answer).toMatch(/\r\nretry-after: \d+\r\n/);
});

test("a fault of what judges them lets nobody in, and tells nothing", async () => {
  const { port, callers } = await start(() => {
    throw new TypeError("at /srv/tokens.ts:1:1");
  });
  for (const made of [http, rpc]) {
    const answer = await sendRaw(port, made("authorization: Bearer ann"));
    expect(answer).toMatch(/^HTTP\/1.1 50[02] /);
    expect(answer).not.toContain("/srv/");
  }
  expect(callers).toEqual([]);
});

describe("credentials that are not valid", () => {
  const [wrong, right] = ["authorization: Bearer 0", "authorization: Bearer ann"];
  const key = "x-api-key: ann";

  /** A gateway at a moment of its own. `verified` are the credentials that were judged. */
  async function startAt(moment: { now: number }) {
    const verified: string[] = [];
    const verify: Verify = (text) => {
      verified.push(text);
      return byName(text);
    };
    const { port, callers } = await start(verify, () => moment.now);
    const statusOf = async (request: string) => (await sendRaw(port, request)).split(" ", 2)[1];
    return { port, callers, verified, statusOf };
  }

  test("are 401 for an address 20 times a minute, and then 429, at both endpoints together", async () => {
    const moment = { now: 0 };
    const { port, statusOf } = await startAt(moment);
    for (let i = 0; i < 10; i++) {
      // Who shows nothing has no invalid one, and valid ones are no failure.
      expect(await statusOf(http())).toBe("401");
      expect(await statusOf(http(right))).toBe("404");
      expect(await statusOf(http(wrong))).toBe("401");
      expect(await statusOf(rpc(wrong))).toBe("401");
    }
    const refused = await sendRaw(port, http(wrong));
    expect(recordIn(refused)).toEqual({
      code: "RATE_LIMITED",
      message:
        "Only 20 requests in 60 s with credentials that are not valid may come from an address: try again in 3 s.",
      status: 429,
    });
    expect(refused).toMatch(/\r\nretry-after: 3\r\n/i);
    expect(await statusOf(rpc(wrong))).toBe("429");
    expect(await statusOf(http("x-api-key: 0"))).toBe("429");
    moment.now = 3000;
    expect(await statusOf(http(wrong))).toBe("401");
    expect(await statusOf(http(wrong))).toBe("429");
  });

  test("keep out no valid API key of the same address, and no access token that was valid before", async () => {
    const { callers, verified, statusOf } = await startAt({ now: 0 });
    expect(await statusOf(http(right))).toBe("404");
    for (let i = 0; i < 100; i++) expect(await statusOf(http(wrong))).toBe(i < 20 ? "401" : "429");
    // Signatures cost: of an address that sends invalid tokens 50 a second are checked, once the first was found invalid.
    expect(verified.filter((text) => text === "0")).toHaveLength(51);
    for (const made of [http, rpc]) for (const shown of [key, right]) expect(await statusOf(made(shown))).toBe("404");
    expect(await statusOf(http())).toBe("401");
    expect(callers).toEqual(Array(5).fill("ann"));
  });

  test("make a new access token wait for a second, at most", async () => {
    const moment = { now: 0 };
    const { port, verified, statusOf } = await startAt(moment);
    for (let i = 0; i < 51; i++) await statusOf(http(wrong));
    const refused = await sendRaw(port, http(right));
    expect(recordIn(refused)).toEqual({
      code: "RATE_LIMITED",
      message:
        "Only 50 requests in 1 s with other access tokens may come from an address that sends invalid ones: " +
        "try again in 1 s.",
      status: 429,
    });
    expect(refused).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(verified).not.toContain("ann");
    expect(await statusOf(http(key))).toBe("404");
    moment.now = 1000;
    for (let i = 0; i < 60; i++) expect(await statusOf(http(right))).toBe("404");
  });

  test("are not remembered as valid when they are so no more", async () => {
    let valid = true;
    const verified: string[] = [];
    const { port } = await start((text) => {
      verified.push(text);
      return byName(valid ? "ann" : "0");
    });
    await sendRaw(port, http(right));
    valid = false;
    for (let i = 0; i < 100; i++) await sendRaw(port, http(right));
    expect(verified).toHaveLength(52);
  });
});
