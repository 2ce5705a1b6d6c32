/**
 * Who may call what, in full: every RPC in every protocol at its service and at the gateway, and every HTTP operation, with
 * every kind of credential in every state. All of it is made from the contract: what is added there is tried here.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { operationsOf } from "connect-transcoder";
import { scope } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reasonOf } from "#errors";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { gatewayConfig } from "../../gateway/config.ts";
import { serve as serveGateway } from "../../gateway/serve.ts";
import { publicServices } from "../../gateway/services.ts";
import { createKey, formatKeyFile, noKeys } from "../../packages/rpc/auth/key-file.ts";
import { startIssuer } from "../../packages/rpc/fixtures/issuer.ts";
import { ServerReflection } from "../../packages/rpc/gen/grpc/reflection/v1/reflection_pb.ts";
import { Health } from "../../packages/rpc/gen/health/v1/health_pb.ts";
import { isServiceName, type ServiceName } from "../../processes/names.ts";
import { serviceConfig } from "../../services/config.ts";
import { serve as serveService } from "../../services/serve.ts";
import { freePorts } from "../harness/instances.ts";
import { contractServices } from "../project/contract-services.ts";

type Callable = DescMethodUnary | DescMethodServerStreaming;
const isInternal = ({ typeName }: DescService) => typeName.startsWith("petstore.internal.");
const methodsOf = (services: readonly DescService[]) =>
  services.flatMap(({ methods }) => methods as DescMethod[]) as Callable[];
/** WatchEvents is for HTTP alone, and needs the scopes of what it is asked for. */
const isForRpc = (service: DescService) => !isInternal(service) && service.typeName !== EventService.typeName;
const publicMethods = methodsOf(contractServices.filter(isForRpc));
const internalMethods = methodsOf(contractServices.filter(isInternal));
const operations = publicServices.flatMap(({ desc }) => operationsOf(desc));
const scopes = [...new Set(publicMethods.map((method) => getOption(method, scope)))];
/** "petstore.pet.v1.PetService" and "petstore.internal.v1.PetInternalService" are served by "pet". */
const serviceOf = ({ name }: DescService) => name.replace(/(Internal)?Service$/, "").toLowerCase() as ServiceName;

/** What a credential does for a call of one method. */
type State = "none" | "bad" | "expired" | "wrong scope" | "right scope" | "all scopes";
const states: readonly State[] = ["none", "bad", "expired", "wrong scope", "right scope", "all scopes"];

/** Ways to show a credential, each with the headers for a state of it and a scope that is needed. */
const carriers: Record<string, (state: State, needed: string) => Record<string, string>> = {
  "an API key": (state, needed) => bearer(keys, nameOf(state, needed)),
  "an API key in X-API-Key": (state, needed) => ({ "x-api-key": keys.get(nameOf(state, needed)) ?? "" }),
  "an access token": (state, needed) => bearer(tokens, nameOf(state, needed)),
};
const nameOf = (state: State, needed: string) => (state.endsWith(" scope") ? `${state} ${needed}` : state);
const bearer = (credentials: ReadonlyMap<string, string>, name: string) => ({
  authorization: `Bearer ${credentials.get(name)}`,
});

const stack = new AsyncDisposableStack();
const urls = new Map<string, string>();
const keys = new Map<string, string>();
const tokens = new Map<string, string>();

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "access-"));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const issuer = stack.use(await startIssuer({ audience: "petstore", now: Date.now }));

  let content = noKeys;
  const grant = async (name: string, scopes: readonly string[], isOver = false) => {
    const issued = createKey(content, { name, scopes, expires: isOver ? new Date(Date.now() - 1) : undefined });
    ({ content } = issued);
    keys.set(name, issued.key);
    const exp = Math.floor(Date.now() / 1000) + (isOver ? -300 : 3600);
    tokens.set(name, await issuer.sign({ sub: name, scope: scopes.join(" "), exp }));
  };
  for (const needed of scopes) {
    await grant(`right scope ${needed}`, [needed]);
    await grant(
      `wrong scope ${needed}`,
      scopes.filter((one) => one !== needed),
    );
  }
  await grant("all scopes", ["*"]);
  await grant("expired", ["*"], true);
  keys.set("bad", createKey(noKeys, { name: "unknown", scopes: ["*"], expires: undefined }).key);
  const foreign = stack.use(await startIssuer({ audience: "petstore", now: Date.now }));
  tokens.set("bad", await foreign.sign({ iss: issuer.url, scope: "*" }));
  const file = join(dataDir, "keys.json");
  await writeFile(file, formatKeyFile(content));

  const env = {
    INTERNAL_SECRET: "the-secret-of-a-petstore-under-test",
    PORT_BASE: String(await freePorts()),
    DATA_DIR: dataDir,
    LOG_LEVEL: "silent",
    LAME_DUCK: "0s",
    TRUST_PROXY: "127.0.0.1",
    AUTH_MODE: "keys,jwt",
    API_KEYS_FILE: file,
    JWT_ISSUER: issuer.url,
    JWT_AUDIENCE: "petstore",
    JWT_JWKS: issuer.jwksUrl,
  };
  for (const name of ["pet", "category", "order", "inventory"].filter(isServiceName))
    urls.set(name, (await serveService(serviceConfig(env, name, false), stack, () => {})).url);
  urls.set("gateway", (await serveGateway(gatewayConfig(env, false), stack)).url);
});
afterAll(() => stack.disposeAsync());

const urlOf = (name: string) => urls.get(name) ?? "";
const open: Record<string, (baseUrl: string) => Transport> = {
  gRPC(baseUrl) {
    const sessionManager = new Http2SessionManager(baseUrl);
    stack.defer(() => sessionManager.abort());
    return createGrpcTransport({ baseUrl, sessionManager });
  },
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect's GET": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true }),
};
const transports = new Map<string, Transport>();
function transportTo(name: string, protocol: string): Transport {
  const place = `${name} ${protocol}`;
  const transport = transports.get(place) ?? (open[protocol] as (url: string) => Transport)(urlOf(name));
  transports.set(place, transport);
  return transport;
}

let requests = 0;
/** Each request comes from an address of its own: one address may show few credentials that are not valid. */
function fromElsewhere(): Record<string, string> {
  requests++;
  return { "x-forwarded-for": `10.0.${requests >> 8}.${requests & 255}` };
}

/** What became of a call: "admitted" if it was looked at, else status or code, reason and challenge. */
type Seen = "admitted" | readonly [status: number | string, reason: string | undefined, challenge: string | null];

/** Codes of an RPC with an empty message that was looked at. */
const LOOKED_AT: readonly Code[] = [Code.InvalidArgument, Code.NotFound];

async function rpc(name: string, protocol: string, method: Callable, headers: Record<string, string>): Promise<Seen> {
  try {
    const sent = { ...headers, ...fromElsewhere() };
    const transport = transportTo(name, protocol);
    if (method.methodKind === "unary") await transport.unary(method, undefined, 10_000, sent, create(method.input));
    else await firstOf(transport, method, sent);
    return "admitted";
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    if (LOOKED_AT.includes(error.code)) return "admitted";
    return [Code[error.code], reasonOf(error)?.reason, error.metadata.get("www-authenticate")];
  }
}

/** A stream goes on as long as its caller is there. */
async function firstOf(transport: Transport, method: DescMethodServerStreaming, headers: Record<string, string>) {
  const gone = new AbortController();
  const request = (async function* () {
    yield create(method.input);
  })();
  try {
    const { message } = await transport.stream(method, gone.signal, 10_000, headers, request);
    await message[Symbol.asyncIterator]().next();
  } finally {
    gone.abort();
  }
}

async function http(verb: string, path: string, body: boolean, headers: Record<string, string>): Promise<Seen> {
  const sent = { ...headers, ...fromElsewhere(), ...(body && { "content-type": "application/json" }) };
  const answer = await fetch(urlOf("gateway") + path, { method: verb, headers: sent, body: body ? "{}" : null });
  const text = await answer.text();
  if ([200, 201, 204, 400, 404].includes(answer.status)) return "admitted";
  // HEAD has the status alone.
  const reason = text === "" ? undefined : JSON.parse(text).code;
  return [answer.status, reason, answer.headers.get("www-authenticate")];
}

const REALM = 'Bearer realm="petstore"';
/** What has to become of it. `codes` are those for who is not known and for who may not. */
function expected(state: State, needed: string, [unknown, forbidden]: readonly (number | string)[]): Seen {
  if (state === "none") return [unknown as string, "UNAUTHENTICATED", REALM];
  if (state === "bad" || state === "expired")
    return [unknown as string, "UNAUTHENTICATED", `${REALM}, error="invalid_token"`];
  if (state === "wrong scope")
    return [forbidden as string, "PERMISSION_DENIED", `${REALM}, error="insufficient_scope", scope="${needed}"`];
  return "admitted";
}

/** One row of the matrix: every carrier in every state, and what is seen beside what has to be. */
async function row(
  needed: string,
  codes: readonly (number | string)[],
  call: (headers: Record<string, string>) => Promise<Seen>,
) {
  const seen: Record<string, Seen> = {};
  const wanted: Record<string, Seen> = {};
  for (const state of states)
    for (const [carrier, headersFor] of Object.entries(carriers)) {
      const place = state === "none" ? state : `${carrier}: ${state}`;
      seen[place] ??= await call(state === "none" ? {} : headersFor(state, needed));
      wanted[place] = expected(state, needed, codes);
    }
  return { seen, wanted };
}

const isSafe = ({ idempotency }: DescMethod) => idempotency === 1;
const inProtocols = (method: Callable) => [
  ...["gRPC", "gRPC-Web", "Connect"].map((protocol) => [method.parent.name, method.name, protocol, method] as const),
  ...(isSafe(method) && method.methodKind === "unary"
    ? [[method.parent.name, method.name, "Connect's GET", method] as const]
    : []),
];

test("the matrix has every RPC that is not internal, each with a scope", () => {
  expect(publicMethods.map((method) => `${method}`).sort()).toEqual(
    methodsOf(publicServices.map(({ desc }) => desc))
      .map((method) => `${method}`)
      .sort(),
  );
  expect(publicMethods.length).toBeGreaterThanOrEqual(22);
  expect(operations.length).toBeGreaterThanOrEqual(22);
  expect(scopes).not.toContain("");
});

describe("at the service", () => {
  test.each(publicMethods.flatMap(inProtocols))("%s.%s by %s", async (_, __, protocol, method) => {
    const { seen, wanted } = await row(getOption(method, scope), ["Unauthenticated", "PermissionDenied"], (headers) =>
      rpc(serviceOf(method.parent), protocol, method, headers),
    );
    expect(seen).toEqual(wanted);
  });
});

describe("through the gateway", () => {
  test.each(publicMethods.flatMap(inProtocols).filter(([, , protocol]) => protocol !== "gRPC"))(
    "%s.%s by %s",
    async (_, __, protocol, method) => {
      const { seen, wanted } = await row(getOption(method, scope), ["Unauthenticated", "PermissionDenied"], (headers) =>
        rpc("gateway", protocol, method, headers),
      );
      expect(seen).toEqual(wanted);
    },
  );

  const calls = operations.flatMap(({ verb, path, method, body }) =>
    (verb === "GET" ? ["GET", "HEAD"] : [verb]).map(
      (one) => [one, path.replaceAll(/\{\w+\}/g, "999999"), getOption(method, scope), body !== undefined] as const,
    ),
  );
  test.each(calls)("%s %s needs %s", async (verb, path, needed, body) => {
    const { seen, wanted } = await row(needed, [401, 403], (headers) => http(verb, path, body, headers));
    const told = (all: Record<string, Seen>) =>
      verb === "HEAD"
        ? Object.entries(all).map(([place, one]) => [place, one === "admitted" ? one : [one[0], one[2]]])
        : all;
    expect(told(seen)).toEqual(told(wanted));
  });
});

describe("internal RPCs take nothing but the secret of the petstore's own processes", () => {
  test.each(internalMethods.flatMap(inProtocols))("%s.%s by %s", async (_, __, protocol, method) => {
    for (const headers of [
      {},
      ...["all scopes", "bad"].flatMap((name) => [bearer(keys, name), bearer(tokens, name)]),
    ]) {
      const seen = await rpc(serviceOf(method.parent), protocol, method, headers);
      expect(seen).toEqual(["PermissionDenied", "PERMISSION_DENIED", null]);
      expect((await rpc("gateway", protocol === "gRPC" ? "Connect" : protocol, method, headers))[0]).toBe(
        "Unimplemented",
      );
    }
  });
});

describe("what is open to all", () => {
  test.each(["/healthz", "/readyz", "/openapi.json", "/docs"])("%s", async (path) => {
    expect((await fetch(urlOf("gateway") + path)).status).toBe(200);
    const headers = bearer(keys, "bad");
    expect((await fetch(urlOf("gateway") + path, { headers })).status).toBe(200);
  });

  test.each(["pet", "category", "order", "inventory"])(
    "health of %s, and its reflection for whoever is known",
    async (name) => {
      const transport = transportTo(name, "gRPC");
      expect((await createClient(Health, transport).check({})).status).toBe(1);
      const ask = async (headers: Record<string, string>) => {
        const questions = (async function* () {
          yield { messageRequest: { case: "listServices" as const, value: "" } };
        })();
        for await (const { messageResponse } of createClient(ServerReflection, transport).serverReflectionInfo(
          questions,
          {
            headers,
          },
        ))
          return messageResponse.case;
        return undefined;
      };
      expect(await ask(bearer(tokens, `right scope ${scopes[0]}`))).toBe("listServicesResponse");
      for (const headers of [{}, bearer(keys, "bad"), bearer(tokens, "expired")])
        await expect(ask(headers)).rejects.toMatchObject({ code: Code.Unauthenticated });
    },
  );
});

describe("the order of checks", () => {
  const call = (path: string, init: RequestInit = {}) =>
    fetch(urlOf("gateway") + path, init).then(({ status }) => status);
  test("route, method and sizes go before credentials, all else behind them", async () => {
    expect(await call("/nowhere")).toBe(404);
    expect(await call("/pets", { method: "DELETE" })).toBe(405);
    expect(await call(`/pets?${"x".repeat(9000)}`)).toBe(414);
    const broken = { method: "POST", body: "{", headers: { accept: "image/png", "content-type": "text/plain" } };
    expect(await call("/pets", broken)).toBe(401);
    expect(await call("/pets/999999")).toBe(401);
    const headers = bearer(keys, "wrong scope pets:read");
    expect(await call("/pets/999999", { headers })).toBe(403);
    expect(await call("/pets/x", { headers })).toBe(403);
  });
});
