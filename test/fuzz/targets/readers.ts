/** Functions that read text from outside, called in this process: each returns a value or throws its documented error. */
import { formatKeyFile, KeyFileError, parseKeyFile } from "@petstore/rpc/auth/key-file";
import { ConfigError } from "@petstore/runtime/environment";
import { HttpError, operationsOf } from "connect-transcoder";
import fc from "fast-check";
import { errors as joseErrors } from "jose";
import { pino } from "pino";
import { gatewayConfig } from "../../../gateway/config.ts";
import { httpServices } from "../../../gateway/services.ts";
import { launcherConfig } from "../../../launcher/config.ts";
import { InvalidCredential, parseApiKey } from "../../../packages/rpc/auth/credentials.ts";
import { createKeySet, NoKeys } from "../../../packages/rpc/auth/key-set.ts";
import { callerAddress } from "../../../packages/rpc/http/hosts.ts";
import { EXACT } from "../../../packages/transcoder/contract/codec.ts";
import { inputReader } from "../../../packages/transcoder/request/input.ts";
import { serviceConfig } from "../../../services/config.ts";
import { DomainError } from "../../../services/records/errors.ts";
import { readPage } from "../../../services/records/page.ts";
import { expectThat, Find, kindOf } from "../find.ts";
import { type Json, jsonBytes, oddJson } from "../messages.ts";
import type { LocalTarget } from "../target.ts";
import { bytesOf, oddField, oddString, repeated, type Text } from "../texts.ts";
import { bytesOfCase, type HttpCase, http } from "./http.ts";

export type ReaderCase =
  | { readonly reads: "environment"; readonly variables: readonly (readonly [name: string, value: Text])[] }
  | { readonly reads: "key file" | "key set"; readonly file: Json; readonly token?: string }
  | { readonly reads: "API key" | "page token" | "Forwarded"; readonly text: Text }
  | { readonly reads: "request"; readonly request: HttpCase };

/** Any other error than these is a find. Error messages are for people, and contain no stack. */
async function only(
  known: readonly (abstract new (...parts: never[]) => Error)[],
  what: string,
  read: () => unknown,
): Promise<Error | undefined> {
  try {
    await read();
    return undefined;
  } catch (error) {
    if (error instanceof Find) throw error;
    const isKnown = known.some((kind) => error instanceof kind);
    expectThat(isKnown, `${what} fails with ${kindOf(error as Error)}`, (error as Error).stack);
    return error as Error;
  }
}

const SECRETS = ["INTERNAL_SECRET", "MONGODB_URI"];

async function readVariables(variables: readonly (readonly [string, Text])[]): Promise<number> {
  const environment = Object.fromEntries(variables.map(([name, value]) => [name, bytesOf(value).toString()]));
  const configs = [
    () => gatewayConfig(environment, false),
    () => serviceConfig(environment, "pet", false),
    () => launcherConfig(environment, false),
  ];
  for (const read of configs) {
    const error = await only([ConfigError], "the environment", read);
    if (!error) continue;
    expectThat(/[A-Z]+_?[A-Z]+/.test(error.message), "a problem of the environment names no variable", error.message);
    for (const name of SECRETS) {
      const value = environment[name]?.trim() ?? "";
      const others = Object.entries(environment).some(([other, text]) => other !== name && text?.includes(value));
      if (value.length > 8 && !others)
        expectThat(!error.message.includes(value), `a problem shows ${name}`, error.message);
    }
  }
  return JSON.stringify(environment).length;
}

async function readKeyFile(file: Json): Promise<number> {
  const text = jsonBytes(file).toString();
  await only([KeyFileError], "a file of keys", () => {
    const content = parseKeyFile(text);
    expectThat(
      formatKeyFile(parseKeyFile(formatKeyFile(content))) === formatKeyFile(content),
      "a file of keys is written otherwise than read",
    );
  });
  return text.length;
}

const log = pino({ level: "silent" });

async function readKeySet(file: Json, token: string): Promise<number> {
  const text = jsonBytes(file).toString();
  // The text may not be JSON, which `refresh` reports.
  const load = async (): Promise<unknown> => JSON.parse(text);
  const keys = createKeySet(load, { wallClock: () => 0, log });
  const isSet = await keys.refresh().then(
    () => true,
    () => false,
  );
  const known = [NoKeys, joseErrors.JOSEError];
  for (const header of isSet ? [{ alg: "ES256", kid: token }, { alg: "RS256" }] : []) {
    const signed = `${Buffer.from(JSON.stringify(header)).toString("base64url")}.e30.AAAA`;
    await only(known, "a set of keys", () => keys.verify(signed, {}));
  }
  return text.length;
}

async function readPageToken(text: string): Promise<number> {
  const nothing = {
    maxSize: 100,
    filter: [],
    ids: [],
    getMany: async () => [],
    list: async () => [],
    matches: () => true,
  };
  await only([DomainError], "a page token", () => readPage({ pageToken: text }, nothing));
  return text.length;
}

const addressOf = callerAddress([{ address: "127.0.0.1", bits: 32 }]);

async function readForwarded(text: string): Promise<number> {
  const socket = { remoteAddress: "127.0.0.1" };
  const headersOf = [{ forwarded: text }, { "x-forwarded-for": text }, { forwarded: text, "x-forwarded-for": text }];
  for (const headers of headersOf)
    await only([], "an address of a caller", () => {
      const address = addressOf({ headers, socket });
      expectThat(address.length < 60, "an address of a caller has any length", address.slice(0, 100));
    });
  return text.length;
}

const operations = httpServices.flatMap(operationsOf);
const requestReaders = operations.map((operation) => ({
  operation,
  read: inputReader(operation, { basePath: "", maxDepth: 16, codec: EXACT }),
}));

/** Reads the request with the transcoder's readers of all matching operations. */
async function readRequest(one: HttpCase): Promise<number> {
  const credentials = { key: "", token: "", secret: "" };
  for (const { verb, target, headers, body } of one.requests) {
    const latin1 = (text: Text) => bytesOf(text, "latin1").toString("latin1");
    const fields = Object.fromEntries(headers.map(([name, value]) => [latin1(name).toLowerCase(), latin1(value)]));
    const path = latin1(target);
    const matching = requestReaders.filter(
      ({ operation }) => operation.verb === latin1(verb) && isAt(operation.path, path),
    );
    for (const { read } of matching)
      for (const strict of [true, false])
        await only([HttpError], "a request", () =>
          read({ target: path, headers: fields, body: body && jsonBytes(body.content), strict }),
        );
  }
  return bytesOfCase(one, credentials).length;
}

const isAt = (template: string, target: string): boolean => {
  const [path = ""] = target.split("?");
  const [asked, wanted] = [path.split("/"), template.split("/")];
  return asked.length === wanted.length && wanted.every((part, i) => part.startsWith("{") || part === asked[i]);
};

function call(one: ReaderCase): Promise<number> {
  switch (one.reads) {
    case "environment":
      return readVariables(one.variables);
    case "key file":
      return readKeyFile(one.file);
    case "key set":
      return readKeySet(one.file, one.token ?? "1");
    case "page token":
      return readPageToken(bytesOf(one.text).toString());
    case "Forwarded":
      return readForwarded(bytesOf(one.text, "latin1").toString("latin1"));
    case "API key": {
      const text = bytesOf(one.text).toString();
      return only([InvalidCredential], "an API key", () => parseApiKey(text)).then(() => text.length);
    }
    case "request":
      return readRequest(one.request);
  }
}

/** Usual values of the variables: to get far in the readers, most of them have to be right. */
const VARIABLES: readonly (readonly [name: string, ...values: string[]])[] = [
  ["HOST", "127.0.0.1", "::1", "0.0.0.0", "a.example", "1.2.3", "-a"],
  ["PORT", "0", "8080", "65536"],
  ["PORT_BASE", "8080", "65535", "1023"],
  ["REPLICAS", "gateway:4,pet:2", "pet:64", "pet:1,pet:2", "pet", "__proto__:1"],
  ["REPLICA", "1", "65"],
  ["PET_URL", "http://127.0.0.1:8081", "http://[::1]:1,https://a", "http://a/b", "http://u:p@a"],
  ["MONGODB_URI", "mongodb://user:password@db/", "mongodb+srv://user:password@db", "http://user:password@db"],
  ["DATA_DIR", "data", "/", "\u0000"],
  ["ALLOW_UNAUTHENTICATED", "beyond-loopback", "yes"],
  ["MAX_CONNECTIONS", "1000", "9", "1e3"],
  ["MAX_STREAMS", "1000", "0", "1e3"],
  ["MAX_STREAMS_PER_CALLER", "20", "0", "-1"],
  ["WRITE_TIMEOUT", "30s", "1h", "999999999d"],
  ["LINK", "on", "off", "ON"],
  ["RATE_LIMIT", "600/min", "600/min;burst=100", "0/s", "9999999/s"],
  ["TRUST_PROXY", "10.0.0.0/8", "::1/128,127.0.0.1", "10.0.0.0/33", "a/8", "1.2.3.4/8/8"],
  ["AUTH_MODE", "none", "keys", "jwt", "keys,jwt", "jwt,keys"],
  ["API_KEYS_FILE", "keys.json"],
  ["JWT_ISSUER", "https://login.example"],
  ["JWT_AUDIENCE", "petstore"],
  ["JWT_JWKS", "https://login.example/jwks.json", "http://a", "http://127.0.0.1/x", "ftp://a", "keys.json", "https://"],
  ["JWT_ALGORITHMS", "RS256,ES256", "none", "HS256", ","],
  ["LOG_LEVEL", "info", "loud"],
  ["LOG_FORMAT", "json", "xml"],
  [
    "PUBLIC_URL",
    "https://shop.example",
    "https://shop.example/a/",
    "http://[::1]:1",
    "//a",
    "http://a/?b",
    "http://a@b",
  ],
  ["HTTP_BASE_PATH", "/api", "/", "/api/", "//", "/../a", "/a/.."],
  ["CORS_ORIGINS", "https://shop.example", "*", "null", "https://a/b"],
  ["MAX_BODY_BYTES", "65536", "0"],
  ["MAX_REQUEST_TIME", "10s", "1ms"],
  ["DEPRECATED_AT", "2027-01-01", "2027-13-01", "2027-02-30", "2027-12-31T23:59:60Z"],
  ["SUNSET_AT", "2026-01-01", "2027-12-31T23:59:59+24:00", "9999-12-31", "0000-01-01"],
  ["LAME_DUCK", "500ms", "61s"],
  ["CRASH_AT", "order.placed"],
];
const variable = fc.oneof(
  ...VARIABLES.map(([name, ...values]) => ({
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant(name),
      fc.oneof<fc.MaybeWeightedArbitrary<Text>[]>(
        { weight: 4, arbitrary: fc.constantFrom<Text[]>(...values) },
        { weight: 2, arbitrary: oddString },
        { weight: 1, arbitrary: repeated(30_000, ["a", "1", ",", "a,", "pet:1,", ".", "/a", "10.0.0.1,", " ", "-"]) },
      ),
    ),
  })),
  { weight: 1, arbitrary: fc.tuple(oddString, oddString) },
);
const secret = fc.tuple(
  fc.constant("INTERNAL_SECRET"),
  fc.oneof<fc.MaybeWeightedArbitrary<Text>[]>(
    { weight: 6, arbitrary: fc.constant<Text>("a secret that no message may ever show".replaceAll(" ", "-")) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Text[]>("too-short-a-secret", "this one has blanks and is long enough for any"),
    },
  ),
);
const environment = fc.record({
  reads: fc.constant("environment" as const),
  variables: fc.tuple(secret, variable, variable, variable, variable),
});

const ofText = (text: string): fc.Arbitrary<Json> => fc.record({ raw: fc.constant<Text>(text) });
const member = (name: string, usual: string) =>
  fc.tuple(fc.constant(name), fc.oneof({ weight: 8, arbitrary: ofText(usual) }, { weight: 1, arbitrary: oddJson }));
const members = (...all: readonly (readonly [name: string, usual: string])[]): fc.Arbitrary<Json> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ members: fc.tuple(...all.map(([name, usual]) => member(name, usual))) }) },
    {
      weight: 2,
      arbitrary: fc.record({ members: fc.array(fc.oneof(...all.map(([name, usual]) => member(name, usual)))) }),
    },
    { weight: 1, arbitrary: oddJson },
  );
const listOf = (one: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        members: fc.tuple(fc.tuple(fc.constant("keys"), fc.record({ items: fc.array(one, { maxLength: 3 }) }))),
      }),
    },
    { weight: 1, arbitrary: oddJson },
  );
const keyFile = fc.record({
  reads: fc.constant("key file" as const),
  file: listOf(
    members(
      ["id", '"0123456789ab"'],
      ["name", '"ci"'],
      ["hash", `"${"0".repeat(64)}"`],
      ["scopes", '["pets:read","*"]'],
      ["rate", '"600/min"'],
      ["expires", '"2027-01-01T00:00:00Z"'],
    ),
  ),
});
const keySet = fc.record({
  reads: fc.constant("key set" as const),
  file: listOf(
    members(
      ["kty", '"EC"'],
      ["crv", '"P-256"'],
      ["kid", '"1"'],
      ["alg", '"ES256"'],
      ["use", '"sig"'],
      ["x", '"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"'],
      ["y", '"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"'],
      ["n", '"AQAB"'],
      ["e", '"AQAB"'],
    ),
  ),
  token: oddString,
});
const keyText: fc.Arbitrary<Text> = fc.oneof(
  oddField,
  fc.tuple(fc.constant<Text>("psk_"), oddField, fc.constant<Text>("_"), oddField),
  fc.constant<Text>(`psk_0123456789ab_${"0".repeat(72)}`),
);
const token: fc.Arbitrary<Text> = fc.oneof(
  oddField,
  fc.string({ unit: fc.constantFrom(..."MS5BQUFB_-=.0123"), maxLength: 40 }),
);
const forwarded: fc.Arbitrary<Text> = fc.oneof(
  oddField,
  fc.array(
    fc.oneof(
      fc.constantFrom<Text[]>(
        "for=192.0.2.60",
        'for="[2001:db8::1]:47"',
        "for=_x",
        ";proto=http",
        ", ",
        "192.0.2.1:80",
        "[::1]",
      ),
      oddField,
    ),
    { maxLength: 5 },
  ),
);

export const readers: LocalTarget<ReaderCase> = {
  name: "readers",
  about: "the environment, files of keys, tokens and requests, read by functions of this process",
  cases: fc.oneof<fc.MaybeWeightedArbitrary<ReaderCase>[]>(
    environment,
    keyFile,
    keySet,
    fc.record({ reads: fc.constant("API key" as const), text: keyText }),
    fc.record({ reads: fc.constant("page token" as const), text: token }),
    fc.record({ reads: fc.constant("Forwarded" as const), text: forwarded }),
    { weight: 3, arbitrary: fc.record({ reads: fc.constant("request" as const), request: http.cases }) },
  ),
  call,
};
