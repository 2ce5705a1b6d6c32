/** Access tokens of a real issuer, over HTTP, and what somebody makes of them who has none. */
import { createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { base64url } from "jose";
import { pino } from "pino";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { type Issuer, startIssuer } from "../fixtures/issuer.ts";
import { InvalidCredential } from "./credentials.ts";
import { openTokens, type TokenConfig } from "./tokens.ts";

let now: number;
let issuer: Issuer;
let logged: string[];
beforeEach(async () => {
  now = Date.parse("2030-01-01T00:00:00Z");
  logged = [];
  issuer = await startIssuer({ audience: "petstore", now: () => now });
  onTestFinished(() => issuer[Symbol.asyncDispose]());
});
const minutes = (count: number) => {
  now += count * 60_000;
};

function open(config: Partial<TokenConfig> = {}) {
  const log = pino({ level: "info" }, { write: (line: string) => logged.push(line) });
  const algorithms = ["RS256", "ES256", "EdDSA"];
  const all = { issuer: issuer.url, audience: "petstore", jwks: issuer.jwksUrl, algorithms, ...config };
  return openTokens(all, { errors, wallClock: () => now, log });
}
/** The words of the refusal. */
async function refusal(verified: unknown): Promise<string> {
  const error = await Promise.resolve(verified).then(
    () => expect.fail("it was accepted"),
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(InvalidCredential);
  return (error as Error).message;
}
const reasons = () => logged.flatMap((line) => JSON.parse(line).reason ?? []);
const part = (content: unknown) => base64url.encode(JSON.stringify(content));
const GENERIC = "The access token can't be verified.";

describe("who it names, and what it grants", () => {
  test.each([
    [{ scope: "pets:read orders:write" }, ["pets:read", "orders:write"]],
    [{ scp: ["pets:read", "orders:write"] }, ["pets:read", "orders:write"]],
    [{ scp: "pets:read" }, ["pets:read"]],
    [{ scope: "pets:read", scp: ["*"] }, ["pets:read"]],
    [{ scope: ["pets:read", 7, null] }, ["pets:read"]],
    [{ scope: { "*": true } }, []],
    [{}, []],
  ])("%j", async (claims, scopes) => {
    const verify = await open();
    expect(await verify(await issuer.sign(claims))).toEqual({ id: "sub:ann", scopes: new Set(scopes) });
  });

  test.each([
    ["ann@shop.example", "sub:ann%40shop.example"],
    ["Zoë \n", "sub:Zo%C3%AB%20%0A"],
    ["system", "sub:system"],
    ["x".repeat(255), `sub:${"x".repeat(255)}`],
  ])("the subject %j can stand in a header", async (sub, id) => {
    const verify = await open();
    expect(await verify(await issuer.sign({ sub }))).toMatchObject({ id });
  });

  test("one audience of several will do", async () => {
    const verify = await open();
    expect(await verify(await issuer.sign({ aud: ["other", "petstore"] }))).toMatchObject({ id: "sub:ann" });
  });
});

describe("claims that do not fit", () => {
  test.each([
    [{ iss: "https://elsewhere.example" }, '"iss"'],
    [{ iss: undefined }, '"iss"'],
    [{ aud: "elsewhere" }, '"aud"'],
    [{ aud: ["elsewhere", "petstore.example"] }, '"aud"'],
    [{ aud: undefined }, '"aud"'],
    [{ exp: undefined }, '"exp"'],
    [{ sub: undefined }, '"sub"'],
    [{ sub: "" }, '"sub"'],
    [{ sub: "x".repeat(256) }, '"sub"'],
    [{ sub: "\ud800" }, '"sub"'],
    [{ sub: 7 as never }, '"sub"'],
  ])("%j", async (claims, words) => {
    const verify = await open();
    expect(await refusal(verify(await issuer.sign(claims)))).toContain(words);
  });

  test.each([[{ typ: "JWT" }], [{ typ: undefined }], [{ typ: "logout+jwt" }]])(
    "%j is no access token (RFC 9068, 4)",
    async (header) => {
      const verify = await open();
      expect(await refusal(verify(await issuer.sign({}, header)))).toContain('"typ"');
      expect(await verify(await issuer.sign({}, { typ: "application/at+jwt" }))).toBeDefined();
    },
  );
});

describe("time, with clocks that differ by up to a minute", () => {
  const seconds = (s: number) => Math.floor(now / 1000) + s;
  test("its end", async () => {
    const verify = await open();
    expect(await verify(await issuer.sign({ exp: seconds(-59) }))).toBeDefined();
    expect(await refusal(verify(await issuer.sign({ exp: seconds(-60) })))).toContain("has expired");
    expect(await refusal(verify(await issuer.sign({ exp: "tomorrow" as never })))).toContain('"exp"');
  });
  test("its beginning", async () => {
    const verify = await open();
    expect(await verify(await issuer.sign({ nbf: seconds(60) }))).toBeDefined();
    expect(await refusal(verify(await issuer.sign({ nbf: seconds(61) })))).toContain('"nbf"');
  });
  test("a token that was accepted once is not later, also where the machine has slept meanwhile", async () => {
    const verify = await open();
    const token = await issuer.sign();
    await verify(token);
    minutes(6); // by the wall clock, which is all that it is given
    expect(await refusal(verify(token))).toContain("has expired");
  });
});

describe("signatures", () => {
  test("none at all, whatever the algorithm is called", async () => {
    const verify = await open();
    const [, claims] = (await issuer.sign()).split(".");
    for (const alg of ["none", "None", "NONE", "nOnE", ""]) {
      const unsigned = `${part({ alg, kid: "key-1", typ: "at+jwt" })}.${claims}.`;
      expect(await refusal(verify(unsigned))).toBe(GENERIC);
    }
  });

  test("HS256 with the issuer's public key as the secret", async () => {
    const verify = await open();
    const [, claims] = (await issuer.sign()).split(".");
    const signed = `${part({ alg: "HS256", kid: "key-1", typ: "at+jwt" })}.${claims}`;
    const signature = createHmac("sha256", await issuer.publicPem())
      .update(signed)
      .digest("base64url");
    expect(await refusal(verify(`${signed}.${signature}`))).toBe(GENERIC);
  });

  test("another algorithm of the same key, which was not allowed", async () => {
    const verify = await open({ algorithms: ["RS256", "EdDSA"] });
    expect(await refusal(verify(await issuer.sign()))).toBe(GENERIC);
  });

  test("claims or a header that were changed, and a signature of another key", async () => {
    const verify = await open();
    const [header, claims, signature] = (await issuer.sign({ scope: "pets:read" })).split(".") as [
      string,
      string,
      string,
    ];
    const more = part({ ...JSON.parse(Buffer.from(claims, "base64url").toString()), scope: "*" });
    expect(await refusal(verify(`${header}.${more}.${signature}`))).toBe(GENERIC);
    const elsewhere = await startIssuer({ audience: "petstore", now: () => now });
    onTestFinished(() => elsewhere[Symbol.asyncDispose]());
    expect(await refusal(verify(await elsewhere.sign({ iss: issuer.url })))).toBe(GENERIC);
  });

  test("a key that the token brings along itself", async () => {
    const verify = await open();
    const elsewhere = await startIssuer({ audience: "petstore", now: () => now });
    onTestFinished(() => elsewhere[Symbol.asyncDispose]());
    const { keys } = (await (await fetch(elsewhere.jwksUrl)).json()) as { keys: unknown[] };
    const own = { jwk: keys[0], jku: elsewhere.jwksUrl };
    expect(await refusal(verify(await elsewhere.sign({ iss: issuer.url }, own)))).toBe(GENERIC);
    expect(elsewhere.asked()).toBe(1); // by this test
  });

  test("extensions that are critical and not known", async () => {
    const verify = await open();
    const [, claims, signature] = (await issuer.sign()).split(".");
    const odd = `${part({ alg: "ES256", kid: "key-1", typ: "at+jwt", crit: ["x"], x: 1 })}.${claims}.${signature}`;
    expect(await refusal(verify(odd))).toBe(GENERIC);
  });

  test.each(["", ".", "..", "a.b", "a.b.c", "a.b.c.d.e", "e30.e30.e30", `${part([])}.${part(7)}.`])(
    "%j is no token",
    async (text) => {
      const verify = await open();
      expect(await refusal(verify(text))).toBe(GENERIC);
    },
  );
});

describe("the issuer's keys", () => {
  test.each(["RS256", "ES256", "EdDSA"])("%s, after a rotation while everything runs", async (alg) => {
    const verify = await open();
    await verify(await issuer.sign());
    minutes(2);
    await issuer.rotate({ alg, keep: true });
    expect(await verify(await issuer.sign())).toBeDefined();
    expect(issuer.asked()).toBe(2);
    await verify(await issuer.sign());
    expect(issuer.asked()).toBe(2);
  });

  test("tokens with keys that are made up make the issuer be asked once a minute, however many come", async () => {
    const verify = await open();
    await verify(await issuer.sign());
    minutes(1);
    for (let minute = 1; minute <= 3; minute++) {
      const made = await Promise.all(Array.from({ length: 20 }, (_, i) => issuer.sign({}, { kid: `made-up-${i}` })));
      for (const error of await Promise.all(made.map((token) => refusal(verify(token))))) expect(error).toBe(GENERIC);
      for (const token of made) await refusal(verify(token));
      expect(issuer.asked()).toBe(1 + minute);
      minutes(1);
    }
  });

  test("while the issuer is away the keys that are known go on, and what is new waits for it", async () => {
    const verify = await open();
    const old = await issuer.sign();
    await verify(old);
    await issuer.goAway();
    minutes(2);
    await issuer.rotate({ keep: true });
    expect(await verify(old)).toBeDefined();
    expect(await refusal(verify(await issuer.sign()))).toBe(GENERIC);
    expect(await verify(old)).toBeDefined();
    await issuer.comeBack();
    minutes(1);
    expect(await verify(await issuer.sign())).toBeDefined();
    expect(logged.join()).toContain("those that are known stay accepted");
  });

  test("without any keys it is UNAVAILABLE and not the caller's fault, until the issuer is there", async () => {
    await issuer.goAway();
    const verify = await open();
    for (const delay of [0, 2]) {
      minutes(delay);
      const error = await Promise.resolve(verify(await issuer.sign())).catch(ConnectError.from);
      expect(error instanceof ConnectError && reasonOf(error)?.reason).toBe("UNAVAILABLE");
    }
    await issuer.comeBack();
    minutes(1);
    expect(await verify(await issuer.sign())).toBeDefined();
  });

  test("until the first keys are there it is asked every 5 s, however many tokens come", async () => {
    issuer.answer({ status: 503, body: "" });
    const verify = await open();
    const token = await issuer.sign();
    const judge = () => Promise.resolve(verify(token)).catch((error) => reasonOf(ConnectError.from(error))?.reason);
    for (let times = 1; times <= 3; times++) {
      expect(await Promise.all([judge(), judge()])).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
      expect(await judge()).toBe("UNAVAILABLE");
      expect(issuer.asked()).toBe(times);
      minutes(1 / 12);
    }
    issuer.answer(undefined);
    expect(await judge()).toMatchObject({ id: "sub:ann" });
    expect(logged.join()).not.toContain("stay accepted");
  });

  test("a key that the issuer took back ends", async () => {
    const verify = await open();
    const old = await issuer.sign({ exp: Math.floor(now / 1000) + 86_400 });
    await verify(old);
    await issuer.rotate();
    minutes(11);
    // It is asked in passing: nobody waits for that.
    await expect
      .poll(() =>
        Promise.resolve(verify(old)).then(
          () => "accepted",
          (error: Error) => error.message,
        ),
      )
      .toBe(GENERIC);
    expect(issuer.asked()).toBe(2);
  });

  test("after a long rest nobody is let in by keys that nobody has asked for since", async () => {
    const verify = await open();
    const old = await issuer.sign({ exp: Math.floor(now / 1000) + 86_400 });
    await verify(old);
    await issuer.rotate();
    minutes(20);
    const refusals = [refusal(verify(old)), refusal(verify(old))];
    expect(await Promise.all(refusals)).toEqual([GENERIC, GENERIC]);
    expect(issuer.asked()).toBe(2);
    // Where the issuer is away they stay accepted, and one attempt is waited for.
    await issuer.goAway();
    minutes(20);
    expect(await verify(await issuer.sign({ exp: Math.floor(now / 1000) + 60 }))).toBeDefined();
  });

  test.each([
    ["an error", { status: 500, body: '{"keys": []}' }],
    ["a redirect", { status: 302, headers: { location: "/elsewhere" }, body: '{"keys": []}' }],
    ["no JSON", { body: "<html>" }],
    ["no keys", { body: '{"keys": "none"}' }],
    ["too much", { body: JSON.stringify({ keys: [], more: "x".repeat(256 * 1024) }) }],
  ])("%s instead of them changes nothing", async (_, answer) => {
    const verify = await open();
    const old = await issuer.sign();
    await verify(old);
    issuer.answer(answer);
    minutes(2);
    expect(await refusal(verify(await issuer.sign({}, { kid: "next" })))).toBe(GENERIC);
    expect(await verify(old)).toBeDefined();
    expect(issuer.asked()).toBe(2);
  });

  describe("more than one that fits a token", () => {
    const publish = (keys: readonly object[]) => issuer.answer({ body: JSON.stringify({ keys }) });
    const withoutId = () => issuer.published().map(({ kid: _, ...jwk }) => jwk);
    const signed = () => issuer.sign({}, { kid: undefined });

    test("one that is published twice", async () => {
      publish([...issuer.published(), ...issuer.published()]);
      const verify = await open();
      expect(await verify(await issuer.sign())).toMatchObject({ id: "sub:ann" });
    });

    test("two without an id, as in a rotation: tokens of both are accepted, and no others", async () => {
      const old = await signed();
      await issuer.rotate({ keep: true });
      publish(withoutId());
      const verify = await open();
      for (const token of [old, await signed()]) expect(await verify(token)).toMatchObject({ id: "sub:ann" });
      expect(await refusal(verify(await issuer.sign({ aud: "elsewhere" }, { kid: undefined })))).toContain('"aud"');
      await issuer.rotate();
      expect(await refusal(verify(await signed()))).toBe(GENERIC);
    });

    test("a new one without an id is found when the issuer publishes it", async () => {
      publish(withoutId());
      const verify = await open();
      await verify(await signed());
      minutes(2);
      await issuer.rotate();
      publish(withoutId());
      expect(await verify(await signed())).toMatchObject({ id: "sub:ann" });
      for (let i = 0; i < 20; i++) await refusal(verify(`${(await signed()).slice(0, -4)}AAAA`));
      expect(issuer.asked()).toBe(2);
    });

    test("one that can't be used does not count", async () => {
      const [jwk] = withoutId();
      publish([{ ...jwk, x: "AA" }, ...withoutId()]);
      const verify = await open();
      expect(await verify(await signed())).toMatchObject({ id: "sub:ann" });
    });

    test("no more than ten are tried", async () => {
      for (let i = 0; i < 10; i++) await issuer.rotate({ keep: true });
      publish(withoutId().slice(1));
      expect(await (await open())(await signed())).toMatchObject({ id: "sub:ann" });
      publish(withoutId());
      expect(await refusal((await open())(await signed()))).toBe(GENERIC);
    });
  });

  test("one that can't be used is not the fault of this system", async () => {
    issuer.answer({ body: JSON.stringify({ keys: issuer.published().map((jwk) => ({ ...jwk, x: "AA" })) }) });
    expect(await refusal((await open())(await issuer.sign()))).toBe(GENERIC);
    expect(reasons()).toEqual(["The issuer's key for it can't be used."]);
  });

  test("they may stand in a file, which is read again for a key that it had not", async () => {
    const directory = await mkdtemp(join(tmpdir(), "jwks-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const jwks = join(directory, "jwks.json");
    const publish = async () => writeFile(jwks, await (await fetch(issuer.jwksUrl)).text());
    await expect(open({ jwks })).rejects.toThrow("JWT_JWKS can't be used: there is no such file.");
    await writeFile(jwks, '{"keys":[{"d":"secret",}]}');
    await expect(open({ jwks })).rejects.toThrow("JWT_JWKS can't be used: it is not JSON.");
    await publish();
    const verify = await open({ jwks });
    expect(await verify(await issuer.sign())).toBeDefined();
    await issuer.rotate();
    await publish();
    minutes(1);
    expect(await verify(await issuer.sign())).toBeDefined();
    await rm(jwks);
    minutes(2);
    expect(await refusal(verify(await issuer.sign({}, { kid: "next" })))).toBe(GENERIC);
    expect(logged.join()).toContain("there is no such file");
    expect(logged.join()).not.toContain(jwks); // it may be a key, given in place of its file
  });
});

test.each([
  ["a file", false],
  ["an address", true],
])("the keys may begin with a byte order mark, in %s", async (_, fromAddress) => {
  const marked = `\ufeff${await (await fetch(issuer.jwksUrl)).text()}`;
  const directory = await mkdtemp(join(tmpdir(), "jwks-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "jwks.json");
  await writeFile(file, marked);
  issuer.answer({ body: marked });
  const verify = await open(fromAddress ? {} : { jwks: file });
  expect(await verify(await issuer.sign())).toBeDefined();
});

describe("the log", () => {
  test("says why, once a minute for each reason, and how often", async () => {
    const verify = await open();
    const good = await issuer.sign();
    await refusal(verify(`${good.slice(0, -4)}AAAA`));
    await refusal(verify(await issuer.sign({}, { kid: "made-up" })));
    await refusal(verify(await issuer.sign({ aud: "elsewhere" })));
    await refusal(verify("a.b.c"));
    expect(reasons()).toEqual([
      "None of the issuer's keys that fit it has signed it.",
      "The issuer has published no key with its kid and its algorithm.",
      'The access token does not count here: its "aud" is missing, or is not what is accepted.',
      "It is no signed JSON Web Token.",
    ]);
    for (let i = 0; i < 100; i++) await refusal(verify("a.b.c"));
    expect(reasons()).toHaveLength(4);
    minutes(1);
    await refusal(verify("a.b.c"));
    expect(logged.slice(4).map((line) => JSON.parse(line))).toMatchObject([
      { reason: "It is no signed JSON Web Token.", refused: 101 },
    ]);
  });

  test("quotes nothing that a token says", async () => {
    const verify = await open();
    const [, claims, signature] = (await issuer.sign()).split(".");
    const odd = { alg: "ES256", kid: "key-1", typ: "at+jwt", crit: ["hunter2"], hunter2: 1 };
    await refusal(verify(`${part(odd)}.${claims}.${signature}`));
    await refusal(verify(await issuer.sign({ iss: "hunter2" }, { kid: "key-1" })));
    await refusal(verify(await issuer.sign({}, { kid: "hunter2" })));
    await refusal(verify(`${part({ alg: "hunter2" })}.${claims}.${signature}`));
    expect(reasons()).toHaveLength(4);
    expect(logged.join()).not.toContain("hunter2");
  });
});

test("no token gets into the log", async () => {
  const verify = await open();
  const token = await issuer.sign();
  await verify(token);
  await refusal(verify(`${token}x`));
  await issuer.goAway();
  minutes(2);
  await refusal(verify(await issuer.sign({}, { kid: "next" })));
  expect(logged.join()).not.toContain(token.split(".")[1]);
});
