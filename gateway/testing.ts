/** A gateway on a real port for tests, and raw requests to it. */
import { connect } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import { createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { createServiceTransport, type ServiceTransport } from "@petstore/rpc/client/pipeline";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { errors } from "#errors";
import { buildGateway, type GatewayOptions } from "./app.ts";
import { authOf } from "./auth.ts";
import { errorOptions } from "./errors.ts";
import { callerAddress } from "./rates/caller-address.ts";

export const testLimits: GatewayOptions["limits"] = {
  urlBytes: 8 * 1024,
  headerBytes: 16 * 1024,
  bodyBytes: 64 * 1024,
  jsonDepth: 16,
  requestMs: 10_000,
};

export const servedInProcess = <S extends DescService>(desc: S, implementation: Partial<ServiceImpl<S>>) =>
  createRouterTransport(({ service }) => service(desc, implementation));

/** Starts a gateway before services that run in this process. `log` collects what it logs. */
export async function startGateway<S extends DescService>(
  desc: S,
  implementation: Partial<ServiceImpl<S>>,
  options: Partial<GatewayOptions> = {},
) {
  const log: string[] = [];
  const transport = servedInProcess(desc, implementation);
  const app = await buildGateway({
    services: [{ desc, transport }],
    errors: errorOptions,
    log: pino({ level: "debug" }, { write: (line: string) => log.push(line) }),
    clock: Date.now,
    random: Math.random,
    limits: testLimits,
    auth: authOf(undefined),
    addressOf: callerAddress([]),
    basePath: "",
    ...options,
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as { port: number };
  const base = `http://127.0.0.1:${port}`;
  return { app, port, base, log, call: (path: string, init?: RequestInit) => call(base + path, init) };
}

/** To the replicas of a service in turn. */
export const servedAt = (secret: string, ...urls: string[]): ServiceTransport =>
  createServiceTransport({ urls, secret, errors, ...realTime });

export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function call(url: string, init?: RequestInit): Promise<Seen> {
  const response = await fetch(url, { redirect: "manual", ...init });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Sends bytes as they are and gives back all that comes until the server closes. `end: false` sends no more, but stays. */
export function sendRaw(port: number, bytes: string | Buffer, { end = true } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("close", () => resolve(answer));
    // A server that has said all it wants may reset the connection while bytes are still on their way to it.
    socket.on("error", (error) => (answer ? resolve(answer) : reject(error)));
    if (end) socket.end(bytes);
    else socket.write(bytes);
  });
}

/** The JSON body of a raw answer. */
export const recordIn = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));
