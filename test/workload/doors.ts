/**
 * Clients for a petstore with several replicas of each process. Each sends a request once, or again where its protocol says
 * so, and throws every other error, so that none is hidden.
 */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants, type IncomingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import type { ServiceName } from "../../processes/names.ts";
import { type Grpc, openGrpc } from "../harness/grpc.ts";
import { performOverHttp } from "./http.ts";
import type { Operation } from "./operations.ts";
import { type Outcome, perform } from "./perform.ts";
import type { Endpoint } from "./reading.ts";

/** Time limit for an answer. */
const LATE_MS = 30_000;

/** gRPC's retry policy (gRFC A6), for calls that failed with UNAVAILABLE. */
const retryPolicy = { attempts: 5, firstMs: 50, multiplier: 2, longestMs: 1_000 };

export interface Petstore {
  readonly http: string;
  urls(service: ServiceName): readonly string[];
}

export interface Door {
  send(operation: Operation): Promise<Outcome>;
  /** Resolves when the client is connected to all replicas again. Some clients reconnect only some time after one was gone. */
  connected(): Promise<void>;
  /** The number of calls that were sent again. */
  retries(): number;
  close(): void;
}

/** 503 and 504 mean that the outcome is unknown; these clients treat them as failures. */
const overHttp = (http: string, send: typeof fetch) => async (operation: Operation) => {
  let answer: Response | undefined;
  const outcome = await performOverHttp(http, operation, async (...call) => {
    answer = await send(...call);
    return answer.clone();
  });
  if (answer && answer.status < 400) return outcome;
  throw new Error(`${answer?.status} ${await answer?.text()}`);
};

const response = (status: number, headers: object, body: string) =>
  new Response(body || null, {
    status,
    headers: Object.entries(headers).filter(([name]) => !name.startsWith(":")),
  });

/**
 * HTTP/1.1 on connections that are kept as long as the gateway allows. They are used in turn: a pool that prefers the last one
 * leaves others idle, and the gateway may close an idle connection just when it is used again.
 */
export function http1({ http }: Petstore): Door {
  const agent = new Agent({ keepAlive: true, scheduling: "fifo" });
  const send = async (url: unknown, { method = "GET", headers, body }: RequestInit = {}) => {
    const signal = AbortSignal.timeout(LATE_MS);
    const call = request(String(url), { agent, method, headers: headers as Record<string, string>, signal });
    call.end(body);
    const [answer] = await once(call, "response");
    return response(answer.statusCode, answer.headers, await text(answer));
  };
  return {
    send: overHttp(http, send as typeof fetch),
    connected: async () => {},
    retries: () => 0,
    close: () => agent.destroy(),
  };
}

/**
 * The gateways share a port, and the system assigns each connection to one of them; with several, more gateways are reached.
 */
const HTTP2_CONNECTIONS = 4;

/**
 * node:http2 on a few connections, used in turn; each is replaced when the gateway sends GOAWAY. Requests that no server has
 * processed are sent again, whatever they are (RFC 9113 section 8.7): refused streams, and streams that a GOAWAY leaves out,
 * which Node closes as refused.
 */
export function http2({ http }: Petstore): Door {
  const sessions: ClientHttp2Session[] = [];
  let calls = 0;
  let retries = 0;
  const open = () => {
    const at = calls++ % HTTP2_CONNECTIONS;
    const known = sessions[at];
    if (known && !known.closed && !known.destroyed) return known;
    const session = connectHttp2(http).on("error", () => {});
    sessions[at] = session;
    return session;
  };
  const send = async (url: unknown, { method = "GET", headers, body }: RequestInit = {}) => {
    const { pathname, search } = new URL(String(url));
    const fields = { ...(headers as Record<string, string>), ":method": method, ":path": pathname + search };
    for (let attempt = 1; ; attempt++) {
      const stream = open().request(fields, { signal: AbortSignal.timeout(LATE_MS) });
      stream.end(body);
      try {
        const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }];
        return response(answer[":status"], answer, await text(stream));
      } catch (error) {
        if (stream.rstCode !== constants.NGHTTP2_REFUSED_STREAM || attempt === retryPolicy.attempts) throw error;
        retries++;
      }
    }
  };
  return {
    send: overHttp(http, send as typeof fetch),
    connected: async () => {},
    retries: () => retries,
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** Calls the services by gRPC, with one transport for each. Every error is a failure. */
function overGrpc(transportTo: (service: ServiceName) => Transport): (operation: Operation) => Promise<Outcome> {
  const transports = new Map<string, Transport>();
  const endpoint: Endpoint = {
    client(desc) {
      const service = desc.name.replace(/Service$/, "").toLowerCase() as ServiceName;
      const transport = transports.get(service) ?? failing(transportTo(service));
      transports.set(service, transport);
      return createClient(desc, transport);
    },
  };
  return (operation) => perform(endpoint, operation);
}

/** Throws plain errors, because `perform` would take a ConnectError for an outcome. */
const failing = ({ stream, unary }: Transport): Transport => ({
  stream,
  unary: (...call) =>
    unary(...call).catch((error) => {
      throw new Error(`${call[0].name}: ${ConnectError.from(error).message}`, { cause: error });
    }),
});

/** @grpc/grpc-js, with gRPC's own load balancing and retries, as its service config asks for them. */
export function grpcJs(petstore: Petstore): Door {
  const clients: Client[] = [];
  /** The replicas of each service, and those that have answered lately. */
  const replicas: { readonly hosts: readonly string[]; readonly answered: Set<string> }[] = [];
  const { attempts, firstMs, longestMs, multiplier } = retryPolicy;
  const serviceConfig = {
    loadBalancingConfig: [{ round_robin: {} }],
    methodConfig: [
      {
        name: [{}],
        retryPolicy: {
          maxAttempts: attempts,
          initialBackoff: `${firstMs / 1000}s`,
          maxBackoff: `${longestMs / 1000}s`,
          backoffMultiplier: multiplier,
          retryableStatusCodes: ["UNAVAILABLE"],
        },
      },
    ],
  };
  const transportTo = (service: ServiceName): Transport => {
    const hosts = petstore.urls(service).map((url) => new URL(url).host);
    const options = { "grpc.service_config": JSON.stringify(serviceConfig), "grpc.enable_retries": 1 };
    const client = new Client(`ipv4:${hosts.join(",")}`, credentials.createInsecure(), options);
    clients.push(client);
    const answered = new Set<string>();
    replicas.push({ hosts, answered });
    const unary: Transport["unary"] = async (method, _signal, _timeoutMs, header, input) => {
      const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<Transport["unary"]>>["message"]>();
      const call = client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: Uint8Array) => Buffer.from(message),
        (bytes) => fromBinary(method.output, bytes),
        toBinary(method.input, create(method.input, input)),
        new Metadata(),
        { deadline: Date.now() + LATE_MS },
        (error, message) => {
          if (error) reject(new ConnectError(error.details, error.code as number as Code));
          else if (message) resolve(message);
        },
      );
      const message = await promise;
      answered.add(call.getPeer());
      return {
        stream: false,
        service: method.parent,
        method,
        header: new Headers(header),
        trailer: new Headers(),
        message,
      } as never;
    };
    return { unary, stream: () => Promise.reject(new Error("nothing streams here")) };
  };
  return {
    send: overGrpc(transportTo),
    // It reconnects to an address that refused it after a pause: 1 s at first, and longer each time (gRPC's connection
    // backoff).
    async connected() {
      for (const { answered } of replicas) answered.clear();
      while (!replicas.every(({ hosts, answered }) => hosts.every((host) => answered.has(host)))) await sleep(20);
    },
    retries: () => Number.NaN, // it does not report them
    close: () => {
      for (const client of clients) client.close();
    },
  };
}

/**
 * gRPC's UNAVAILABLE includes streams that the server did not process. When a GOAWAY comes, Node closes what it has not sent
 * in that way, and connect-node 2.2 calls it internal.
 */
export const isUnavailable = (error: unknown) => {
  const { code, message } = ConnectError.from(error);
  return code === Code.Unavailable || message.includes("NGHTTP2_REFUSED_STREAM");
};

/** @connectrpc/connect-node, with the same retry policy around it, since it has none of its own. */
export function connectNode(petstore: Petstore): Door {
  const open: Grpc[] = [];
  let retries = 0;
  const transportTo = (service: ServiceName): Transport => {
    const replicas = petstore.urls(service).map((baseUrl) => {
      const grpc = openGrpc(baseUrl, { defaultTimeoutMs: LATE_MS });
      open.push(grpc);
      return grpc.transport;
    });
    let calls = 0;
    return {
      async unary(...call) {
        const first = calls++;
        for (let attempt = 1, pause = retryPolicy.firstMs; ; attempt++) {
          try {
            return await (replicas[(first + attempt) % replicas.length] as Transport).unary(...call);
          } catch (error) {
            if (!isUnavailable(error) || attempt === retryPolicy.attempts) throw error;
            retries++;
            await sleep(Math.random() * pause);
            pause = Math.min(pause * retryPolicy.multiplier, retryPolicy.longestMs);
          }
        }
      },
      stream: () => Promise.reject(new Error("nothing streams here")),
    };
  };
  return {
    send: overGrpc(transportTo),
    connected: async () => {}, // it reconnects at once
    retries: () => retries,
    close: () => {
      for (const { close } of open) close();
    },
  };
}
