/**
 * Secrets of every kind are planted, the processes do all that they can, and whatever they wrote is searched for them.
 * What a caller sends as data, in a path, a body or as its X-Request-Id, is no credential: it may be stored, answered and,
 * but for bodies, logged. Credentials in such places are the caller's own mistake; those in header fields and in the
 * values of a query are kept out of everything even so.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { sendRaw } from "../../gateway/fixtures/gateway.ts";
import { parseApiKey } from "../../packages/rpc/auth/credentials.ts";
import { createKey, formatKeyFile, noKeys } from "../../packages/rpc/auth/key-file.ts";
import { type Issuer, startIssuer } from "../../packages/rpc/fixtures/issuer.ts";
import { newAuthority, pairOf } from "../../packages/rpc/fixtures/tls.ts";
import { run } from "../../packages/runtime/fixtures/run.ts";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { freePorts } from "../harness/instances.ts";
import { mongodMissing, startReplicaSet } from "../harness/mongod.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { SECRET } from "../harness/processes.ts";
import { formsOf, leaksIn, type Planted } from "./planted-secrets.ts";

const timeout = 240_000;
const root = join(import.meta.dirname, "../..");

const valid = createKey(noKeys, { name: "valid", scopes: ["*"], expires: undefined });
const unknown = createKey(noKeys, { name: "unknown", scopes: ["*"], expires: undefined });
const INTERNAL = "planted-internal-secret-0123456789";
const SHORT = "planted-too-short-a-secret";
const PASSWORD = "planted:m@ngodb/pass%word";
const BASIC = "planted-password-of-basic";
const QUERY = "planted-in-the-query-0123456789";
const COOKIE = "planted-in-a-cookie-0123456789";
const BODY = "planted-in-a-body-0123456789";
const ODD = "planted-in-a-header-nobody-knows";
const USERINFO = "planted-in-the-userinfo-of-a-url";
const KEY_IN_FILE = "planted-in-a-broken-file-of-keys";
const PRIVATE_JWK = "planted-private-part-of-a-jwk-0123456789";

const planted: Planted[] = [
  { kind: "an API key", text: parseApiKey(valid.key).secret },
  { kind: "an API key that is not known", text: parseApiKey(unknown.key).secret },
  { kind: "INTERNAL_SECRET", text: INTERNAL },
  { kind: "INTERNAL_SECRET of the harness", text: SECRET },
  { kind: "an INTERNAL_SECRET that is refused", text: SHORT },
  { kind: "the password of MONGODB_URI", text: PASSWORD },
  { kind: "a password of Basic", text: BASIC },
  { kind: "a credential in a query", text: QUERY },
  { kind: "a cookie", text: COOKIE },
  { kind: "a credential in an unknown header", text: ODD },
  { kind: "the userinfo of a target", text: USERINFO },
  { kind: "a key in the file of hashes", text: KEY_IN_FILE },
  { kind: "a private key among the issuer's", text: PRIVATE_JWK },
];

let directory: string;
let issuer: Issuer;
const inDirectory = (name: string) => join(directory, name);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "secrets-"));
  const pair = await pairOf(await newAuthority());
  await writeFile(inDirectory("cert.pem"), pair.cert);
  await writeFile(inDirectory("key.pem"), pair.key);
  // A line in the middle: how it begins is the same for every key.
  planted.push({ kind: "the key of a certificate", text: pair.key.split("\n")[2] as string });
  issuer = await startIssuer({ audience: "petstore", now: Date.now });
  await writeFile(inDirectory("keys.json"), formatKeyFile(valid.content));
  await writeFile(inDirectory("public-keys.json"), await (await fetch(issuer.jwksUrl)).text());
});
afterAll(async () => {
  await issuer?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const authentication = () => ({
  AUTH_MODE: "keys,jwt",
  API_KEYS_FILE: inDirectory("keys.json"),
  JWT_ISSUER: issuer.url,
  JWT_AUDIENCE: "petstore",
  JWT_JWKS: inDirectory("public-keys.json"),
});

const expectNoSecrets = (where: string, written: string) =>
  expect({ where, leaks: leaksIn(written, planted) }).toEqual({ where, leaks: [] });

test("the search finds a secret in every form, wherever it stands", () => {
  const text = "planted: a/b+c?ÿ~~~>>>";
  for (const [name, form] of formsOf(text))
    expect(leaksIn(`x ${form} y`, [{ kind: "it", text }]), name).not.toEqual([]);
  for (const before of ["", "a", "ab", "abc"])
    for (const after of ["", "a", "ab"])
      for (const encoding of ["base64", "base64url"] as const)
        expect(leaksIn(Buffer.from(before + text + after).toString(encoding), [{ kind: "it", text }])).not.toEqual([]);
  expect(leaksIn("planted: nothing", planted)).toEqual([]);
});

describe("the petstore", () => {
  let petstore: Petstore;
  let token: string;
  const answers: string[] = [];

  beforeAll(async () => {
    token = await issuer.sign({ sub: "ann", scope: "*" });
    // What nobody foresaw: an error on which everything hangs that the process knows.
    const crash = `process.on("SIGUSR2", () => {
      const { env: environment } = process;
      const headers = { authorization: "Bearer " + environment.PLANTED_KEY, "x-internal-secret": environment.INTERNAL_SECRET };
      const cause = Object.assign(new Error("its cause"), { environment });
      throw Object.assign(new TypeError("the crash that was asked for", { cause }), { headers, environment });
    });`;
    await writeFile(inDirectory("crash.mjs"), crash);
    planted.push({ kind: "an access token", text: token.split(".")[2] as string });
    petstore = await startPetstore({
      env: {
        ...authentication(),
        LOG_LEVEL: "trace",
        NODE_OPTIONS: `--import=${inDirectory("crash.mjs")}`,
        PLANTED_KEY: valid.key,
      },
    });
  }, timeout);
  afterAll(() => petstore?.stop());

  const ask = async (base: string, path: string, headers: Record<string, string> = {}, init: RequestInit = {}) => {
    const answer = await fetch(base + path, { ...init, headers });
    answers.push(`${answer.status} ${[...answer.headers].join("\n")}\n${await answer.text()}`);
    return answer.status;
  };
  const post = (body: object): RequestInit => ({ method: "POST", body: JSON.stringify(body) });
  const json = { "content-type": "application/json" };

  test("takes credentials in their places, at every endpoint", { timeout }, async () => {
    const credentials: Record<string, string>[] = [
      { authorization: `Bearer ${valid.key}` },
      { "x-api-key": valid.key },
      { authorization: `Bearer ${token}` },
    ];
    for (const credential of credentials) {
      expect(await ask(petstore.http, "/pets", credential)).toBe(200);
      expect(
        await ask(petstore.http, "/store/orders", { ...credential, ...json, "idempotency-key": "a" }, post({})),
      ).toBe(201);
      expect(
        await ask(petstore.http, "/petstore.pet.v1.PetService/ListPets", { ...credential, ...json }, post({})),
      ).toBe(200);
      expect(
        await ask(petstore.url("pet"), "/petstore.pet.v1.PetService/ListPets", { ...credential, ...json }, post({})),
      ).toBe(200);
      await createClient(OrderService, petstore.transport(OrderService)).listOrders({}, { headers: credential });
      expect(await ask(petstore.http, "/pets/1", credential)).toBe(404);
    }
    for (const path of ["/openapi.json", "/docs", "/readyz"]) expect(await ask(petstore.http, path)).toBe(200);
  });

  test("refuses them in every other way", { timeout }, async () => {
    const bad: Record<string, string>[] = [
      { authorization: `Bearer ${unknown.key}` },
      { "x-api-key": `${valid.key}x` },
      { authorization: `Bearer ${valid.key}`, "x-api-key": unknown.key },
      { authorization: valid.key },
      { authorization: `Bearer ${valid.key} ${unknown.key}` },
      { authorization: `Basic ${Buffer.from(`ann:${BASIC}`).toString("base64")}` },
      { authorization: `Bearer ${token.slice(0, -8)}AAAAAAAA` },
      { authorization: `Bearer ${token.split(".").slice(0, 2).join(".")}.${token.split(".")[2]}x` },
      { cookie: `session=${COOKIE}`, "proxy-authorization": `Bearer ${ODD}`, "x-auth-token": ODD },
    ];
    for (const headers of bad) {
      expect(await ask(petstore.http, "/pets", headers)).toBe(401);
      expect(
        await ask(
          petstore.url("order"),
          "/petstore.order.v1.OrderService/ListOrders",
          { ...headers, ...json },
          post({}),
        ),
      ).toBe(401);
    }
    const port = Number(new URL(petstore.http).port);
    const raw = async (...lines: string[]) =>
      answers.push(await sendRaw(port, `${lines.join("\r\n")}\r\n\r\n`, { end: false }));
    const key = `Authorization: Bearer ${valid.key}`;
    await raw("GET /pets HTTP/1.1", "Host: localhost", "Connection: close", key, key);
    await raw("GET /pets HTTP/1.1", "Host: localhost", key, "no header");
    await raw("GET /pets HTTP/9.9", "Host: localhost", key);
    await raw("GET /pets HTTP/1.1", "Host: a b", "Connection: close", key);
    await raw("GET /pets HTTP/1.1", "Host: evil.example", "Connection: close", key);
    await raw(`GET http://ann:${USERINFO}@localhost/pets HTTP/1.1`, "Host: localhost", "Connection: close", key);
    await raw("GET /pets HTTP/1.1", `Host: ann:${USERINFO}@localhost`, "Connection: close");
    await raw("GET /pets HTTP/1.1", "Host: localhost", key, `X-Long: ${"x".repeat(20_000)}`);
  });

  test("takes what is in a query, and what is in a body, for no business of a log's", { timeout }, async () => {
    const headers = { authorization: `Bearer ${valid.key}`, ...json };
    for (const query of [`access_token=${QUERY}`, `api_key=${QUERY}&limit=0`, `key=${QUERY}&limit=1&limit=2`]) {
      await ask(petstore.http, `/pets?${query}`, headers);
      await ask(petstore.http, `/pets?${query}`, { ...headers, prefer: "handling=strict" });
      await ask(petstore.http, `/nowhere?${query}`);
      await ask(petstore.url("pet"), `/petstore.pet.v1.PetService/ListPets?${query}`, headers, post({}));
    }
    const secret = { password: BODY, name: BODY, categoryId: BODY };
    for (const body of [secret, { ...secret, categoryId: 1 }, { ...secret, name: { deep: BODY } }]) {
      expect(await ask(petstore.http, "/pets", headers, post(body))).toBeGreaterThanOrEqual(400);
      expect(
        await ask(petstore.url("pet"), "/petstore.pet.v1.PetService/CreatePet", headers, post({ pet: body })),
      ).toBeGreaterThanOrEqual(400);
    }
    for (const reason of ["CATEGORY_NOT_FOUND", "VALIDATION_FAILED"])
      await expect.poll(() => petstore.logs("gateway")).toContain(reason);
    expect(leaksIn(petstore.logs(), [{ kind: "what stood in a body", text: BODY }])).toEqual([]);
  });

  test("fails and crashes", { timeout }, async () => {
    const headers = { authorization: `Bearer ${valid.key}`, ...json };
    await petstore.kill("inventory", "SIGKILL");
    expect(await ask(petstore.http, "/store/inventory", headers)).toBe(503);
    expect(
      await ask(petstore.http, "/store/orders", { ...headers, "x-server-timeout": "0.5" }, post({ petId: 1 })),
    ).toBeGreaterThanOrEqual(500);
    for (const name of ["category", "gateway"] as const) {
      await petstore.kill(name, "SIGUSR2");
      expect(petstore.logs(name)).toContain("the crash that was asked for");
      await petstore.start(name, name === "gateway" ? { LOG_FORMAT: "pretty" } : {});
    }
    await petstore.start("inventory", { LOG_FORMAT: "pretty" });
    expect(await ask(petstore.http, "/store/inventory", headers)).toBe(200);
    expect(await ask(petstore.http, "/pets", { authorization: `Bearer ${unknown.key}` })).toBe(401);
    // A file of keys that breaks while it is read, with a key in it.
    await writeFile(inDirectory("keys.json"), `{"keys": [{"id": "${KEY_IN_FILE}", "hash": "${KEY_IN_FILE}"`);
    await expect.poll(() => petstore.logs("pet")).toContain("can't be used");
    await writeFile(inDirectory("keys.json"), formatKeyFile(valid.content));
  });

  test("wrote none of it: in logs, answers, argument lists, data", { timeout }, async () => {
    const logs = petstore.logs();
    const pids = [...new Set([...logs.matchAll(/"pid":(\d+)/g)].map(([, pid]) => pid as string))];
    const lists = globSync(pids.map((pid) => `/proc/${pid}/cmdline`)).map((path) => readFileSync(path, "utf8"));
    expect(lists.join("\n")).toContain("services/main.ts");
    await petstore.kill(processNames[0], "SIGTERM");
    for (const name of processNames.slice(1)) await petstore.kill(name as ProcessName, "SIGTERM");

    for (const sign of [
      "UNAUTHENTICATED",
      "UNAVAILABLE",
      "INVALID_QUERY",
      "not an HTTP request",
      "Uncaught",
      "stopped",
    ])
      expect(petstore.logs().toLowerCase()).toContain(sign.toLowerCase());
    expectNoSecrets("logs", petstore.logs());
    expect(answers.length).toBeGreaterThan(50);
    expectNoSecrets("answers", answers.join("\n"));
    expectNoSecrets("argument lists", lists.join("\n"));
    const files = globSync(`${petstore.store.dataDir}/**`, { withFileTypes: true }).filter((entry) => entry.isFile());
    if (petstore.store.mongodbUri === undefined) expect(files.length).toBeGreaterThanOrEqual(4);
    for (const { parentPath, name } of files) expectNoSecrets(name, readFileSync(join(parentPath, name), "latin1"));
  });
});

describe("settings that are wrong", () => {
  const started = async (args: string[], env: Record<string, string>) => {
    await using it = run(
      args.map((arg) => (arg.endsWith(".ts") ? join(root, arg) : arg)),
      // A petstore may be at the usual ports, and have the usual directory.
      { LOG_LEVEL: "trace", PORT: "0", ADMIN_PORT: "off", DATA_DIR: inDirectory("data-of-none"), ...env },
    );
    expect(await it.ended).toBe(1);
    expect(it.output()).not.toBe("");
    expectNoSecrets(args.join(" "), it.output());
    return it.output();
  };
  const common = { INTERNAL_SECRET: INTERNAL };
  const uri = `mongodb://ann:${encodeURIComponent(PASSWORD)}@127.0.0.1:1`;

  test.each<[string, string, () => Promise<Record<string, string>> | Record<string, string>]>([
    ["a secret that is too short", "INTERNAL_SECRET", () => ({ INTERNAL_SECRET: SHORT })],
    ["a secret in place of its file", "INTERNAL_SECRET_FILE", () => ({ INTERNAL_SECRET_FILE: INTERNAL })],
    [
      "a secret that is too short, in a file",
      "INTERNAL_SECRET_FILE",
      async () => {
        await writeFile(inDirectory("short"), SHORT);
        return { INTERNAL_SECRET_FILE: inDirectory("short") };
      },
    ],
    ["another database", "MONGODB_URI", () => ({ ...common, MONGODB_URI: uri.replace("mongodb:", "mysql:") })],
    [
      "a password with characters that end it",
      "MONGODB_URI",
      () => ({ ...common, MONGODB_URI: `mongodb://ann:${PASSWORD}@127.0.0.1:1` }),
    ],
    ["an option that there is not", "MONGODB_URI", () => ({ ...common, MONGODB_URI: `${uri}/?nothing=1` })],
    [
      "keys that are none",
      "API_KEYS_FILE",
      async () => {
        await writeFile(
          inDirectory("broken.json"),
          `{"keys":[{"id":"${KEY_IN_FILE}","name":"x","hash":"${KEY_IN_FILE}","scopes":[]}]}`,
        );
        return { ...common, AUTH_MODE: "keys", API_KEYS_FILE: inDirectory("broken.json") };
      },
    ],
    [
      "a private key among the issuer's",
      "JWT_JWKS",
      async () => {
        const jwks = { keys: [{ kty: "OKP", crv: "Ed25519", x: "AA", d: PRIVATE_JWK }] };
        await writeFile(inDirectory("jwks.json"), `${JSON.stringify(jwks).slice(0, -2)}`);
        return { ...common, ...authentication(), AUTH_MODE: "jwt", JWT_JWKS: inDirectory("jwks.json") };
      },
    ],
    [
      "a key in place of its file",
      "TLS_KEY",
      () => ({ ...common, TLS_CERT: inDirectory("cert.pem"), TLS_KEY: readFileSync(inDirectory("key.pem"), "utf8") }),
    ],
    [
      "a key that can't be read",
      "TLS_KEY",
      async () => {
        const key = readFileSync(inDirectory("key.pem"), "utf8");
        await writeFile(inDirectory("cut.pem"), key.replace("-----END", "END"));
        return { ...common, TLS_CERT: inDirectory("cert.pem"), TLS_KEY: inDirectory("cut.pem") };
      },
    ],
  ])("%s is told without it", { timeout }, async (_, name, environment) => {
    expect(await started(["services/main.ts", "order"], await environment())).toContain(name);
    expect(
      await started(["launcher/main.ts"], { PORT_BASE: `${await freePorts()}`, ...(await environment()) }),
    ).toContain(name);
  });
});

test("a port with TLS tells nothing of its key", { timeout }, async () => {
  const [cert, key] = [inDirectory("tls-cert.pem"), inDirectory("tls-key.pem")];
  await copyFile(inDirectory("cert.pem"), cert);
  await copyFile(inDirectory("key.pem"), key);
  const env = { LOG_LEVEL: "trace", PORT: "0", INTERNAL_SECRET: INTERNAL, TLS_CERT: cert, TLS_KEY: key };
  await using it = run([join(root, "services/main.ts"), "order"], { ...env, DATA_DIR: inDirectory("tls-data") });
  const port = Number((await it.printed(/https:\/\/127\.0\.0\.1:(\d+)/))[1]);
  await expect(fetch(`https://127.0.0.1:${port}/`)).rejects.toThrow(); // it does not know the authority
  await writeFile(key, readFileSync(key, "utf8").replace("-----END", "END"));
  await it.printed(/the certificate can't be used/);
  expectNoSecrets("argument list", readFileSync(`/proc/${it.process.pid}/cmdline`, "utf8"));
  it.process.kill("SIGTERM");
  await it.ended;
  expectNoSecrets("output", it.output());
});

test("a MongoDB that is not there is told without its password", { timeout }, async () => {
  const MONGODB_URI = `mongodb://ann:${encodeURIComponent(PASSWORD)}@127.0.0.1:1/?replicaSet=rs`;
  const env = { LOG_LEVEL: "trace", MONGODB_URI, PORT: "0", INTERNAL_SECRET: INTERNAL };
  await using it = run([join(root, "services/main.ts"), "order"], env);
  await it.printed(/waiting for MongoDB/);
  expectNoSecrets("argument list", readFileSync(`/proc/${it.process.pid}/cmdline`, "utf8"));
  it.process.kill("SIGTERM");
  await it.ended;
  expectNoSecrets("output", it.output());
});

test.skipIf(mongodMissing)(
  "a MongoDB that asks for a password, and goes away, leaves none in a log",
  { timeout },
  async () => {
    await writeFile(inDirectory("keyfile"), "a key that members of the set share", { mode: 0o600 });
    await using set = await startReplicaSet({ arguments: ["--keyFile", inDirectory("keyfile")] });
    const roles = ["root"];
    await using client = new MongoClient(set.uri);
    await client.db("admin").command({ createUser: "ann", pwd: PASSWORD, roles });
    const uri = (password: string) =>
      `${set.uri.replace("//", `//ann:${encodeURIComponent(password)}@`)}&authSource=admin`;
    await writeFile(inDirectory("uri"), uri(PASSWORD));
    const common = { LOG_LEVEL: "trace", PORT: "0", INTERNAL_SECRET: INTERNAL };
    const service = join(root, "services/main.ts");

    await using refused = run([service, "order"], { ...common, MONGODB_URI: uri(`${PASSWORD}${PASSWORD}`) });
    expect(await refused.ended).toBe(1);
    expect(refused.output()).toContain("does not accept");
    expectNoSecrets("a wrong password", refused.output());

    await using it = run([service, "order"], { ...common, MONGODB_URI_FILE: inDirectory("uri") });
    const [, url = ""] = await it.printed(/ready at (http:[\d.:/]+)/);
    set.members[0]?.signal("SIGKILL");
    const answer = await fetch(`${url}/petstore.order.v1.OrderService/ListOrders`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(answer.status).toBe(503);
    expectNoSecrets("answer", await answer.text());
    it.process.kill("SIGTERM");
    await it.ended;
    expectNoSecrets("output", it.output());
  },
);

test("npm run keys tells a key once, when it is made", () => {
  const path = join(tmpdir(), `keys-${process.pid}.json`);
  const keys = (...args: string[]) => {
    const { stdout, stderr } = spawnSync(process.execPath, [join(root, "scripts/keys.ts"), ...args], {
      env: { API_KEYS_FILE: path },
      encoding: "utf8",
    });
    return stdout + stderr;
  };
  try {
    const key = /psk_\S+/.exec(keys("create", "--name", "ci", "--scopes", "*"))?.[0] ?? "";
    const { id, secret } = parseApiKey(key);
    const rest = [
      keys("list"),
      keys("revoke", key),
      keys("rotate", "nobody"),
      keys("rotate", id),
      keys("revoke", id),
      keys("list"),
    ];
    rest.push(readFileSync(path, "utf8"));
    expect(leaksIn(rest.join("\n"), [{ kind: "the key", text: secret }])).toEqual([]);
  } finally {
    void rm(path, { force: true });
  }
});
