/** The two endpoints that every case is run against, and checks for every answer. */
import { request as httpRequest } from "node:http";
import { create, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { expect } from "vitest";
import { reasonOf } from "#errors";
import { innerWorkings } from "../../harness/inner-workings.ts";
import { codeName, type Failure, type HttpAnswer, type HttpCall, type RpcAnswer, type RpcCall } from "./case.ts";

export interface HttpSeen {
  readonly status: number;
  /** In lower case; several lines of one name are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends a request exactly as written, without what `fetch` would add or correct. */
export async function sendHttp(base: string, { method, path, headers = {}, body }: HttpCall): Promise<HttpSeen> {
  const bytes = body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const typed = bytes === undefined || "content-type" in headers ? headers : { ...headers, "content-type": JSON_TYPE };
  const length =
    bytes === undefined || "transfer-encoding" in headers ? {} : { "content-length": Buffer.byteLength(bytes) };
  const { hostname, port } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<HttpSeen>();
  const outgoing = httpRequest(
    { hostname, port, method, path, headers: present({ ...typed, ...length }) },
    (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.once("error", reject).once("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: Object.fromEntries(
            Object.entries(response.headersDistinct).map(([name, values = []]) => [name, values.join(", ")]),
          ),
          text,
        }),
      );
    },
  );
  outgoing.once("error", reject).end(bytes);
  return promise;
}

const JSON_TYPE = "application/json";

/** Removes an empty content-type, which stands for none. */
const present = (headers: object) =>
  Object.fromEntries(Object.entries(headers).filter(([name, value]) => name !== "content-type" || value !== ""));

/** Checks what every HTTP answer must have. */
export function checkEveryAnswer({ status, headers, text }: HttpSeen): void {
  expect(headers["x-request-id"]).toMatch(/^[A-Za-z0-9._:/+=-]{1,128}$/);
  expect(headers["api-version"]).toBe("1.0.0");
  if (status >= 400) expect(headers["cache-control"]).toBe("no-store");
  if (status === 204 || status === 304) expect(text).toBe("");
  if (status >= 400) checkTellsNoSecrets(text);
}

/** Checks that a text reveals nothing about internals. */
export function checkTellsNoSecrets(text: string): void {
  for (const pattern of innerWorkings) expect(text).not.toMatch(pattern);
}

export function checkHttpAnswer(seen: HttpSeen, { status, headers = {}, body }: HttpAnswer): void {
  expect({ status: seen.status, text: seen.text }).toMatchObject({ status });
  checkHeaders(seen.headers, headers);
  if (body === undefined) expect(seen.text).toBe("");
  else {
    expect(seen.headers["content-type"]).toMatch(/^application\/json/);
    expect(JSON.parse(seen.text)).toEqual(body);
  }
}

export function checkHttpFailure(seen: HttpSeen, { http = "0 INTERNAL", says = "", headers = {} }: Failure): void {
  const [status, code] = http.split(" ");
  const { message, ...record } = JSON.parse(seen.text) as Record<string, unknown>;
  expect({ ...record, message }).toEqual({ code, status: Number(status), message });
  expect(seen.status).toBe(Number(status));
  expect(message).toEqual(expect.stringContaining(says));
  expect(seen.headers["content-type"]).toMatch(/^application\/json/);
  checkHeaders(seen.headers, headers);
}

export type RpcSeen = { readonly message: object; readonly headers: Headers } | ConnectError;

export async function sendRpc(transport: Transport, { method, request }: RpcCall): Promise<RpcSeen> {
  try {
    const { message, header } = await transport.unary(
      method,
      undefined,
      20_000,
      undefined,
      create(method.input, request as never),
    );
    return { message: toJson(method.output, message, { alwaysEmitImplicit: true }) as object, headers: header };
  } catch (error) {
    return ConnectError.from(error);
  }
}

export function checkRpcAnswer(seen: RpcSeen, { message, headers = {} }: RpcAnswer): void {
  if (seen instanceof ConnectError) throw seen;
  expect(seen.message).toEqual(message);
  checkHeaders(Object.fromEntries(seen.headers), headers);
}

export function checkRpcFailure(seen: RpcSeen, { rpc, says = "" }: Failure): void {
  if (!(seen instanceof ConnectError)) throw new Error(`no error, but ${JSON.stringify(seen.message)}`);
  expect(`${codeName(seen.code, Code)} ${reasonOf(seen)?.reason}`, seen.message).toBe(rpc);
  expect(seen.rawMessage).toContain(says);
  checkTellsNoSecrets(seen.rawMessage);
}

function checkHeaders(seen: Readonly<Record<string, string>>, expected: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(expected))
    expect({ [name]: seen[name] ?? null }).toEqual({ [name]: value });
}
