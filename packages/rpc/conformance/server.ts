/**
 * A process for the Connect conformance suite: this package's server with the service that the suite calls. The suite says
 * on standard input which server it wants, and reads its address from standard output. The one argument is the image that
 * `buf build` makes of the suite's protos.
 *
 * Unary and server-streaming RPCs pass through the dispatcher, like those of any service; streams in binary gRPC bypass
 * Connect. Trailers and the form of a GET, which the suite wants besides, bypass the dispatcher. The dispatcher takes no
 * streams of requests: those RPCs are handled by the router itself, on the same server.
 */
import type { ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { createSecureContext } from "node:tls";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { errors as petstore } from "../../../processes/errors.ts";
import { type ErrorCatalogue, RpcError } from "../errors.ts";
import { defaultStreamLimits } from "../http/limits.ts";
import { strictJson } from "../server/connect.ts";
import { createDispatcher } from "../server/dispatcher.ts";
import type { Implementation } from "../server/handlers.ts";
import { createHealth, healthService } from "../server/health.ts";
import { startRpcServer } from "../server/server.ts";
import { MIN_VERSION, type ServerTls } from "../tls/certificates.ts";
import { createAnswers } from "./answers.ts";
import { readContract } from "./contract.ts";

type Handle = (request: Message, context: HandlerContext) => unknown;

/** On the standard streams each message follows four bytes with its length. */
const PREFIX_BYTES = 4;

const contract = readContract(process.argv[2] ?? "");
const { service, registry } = contract;
const { unary, idempotentUnary, serverStream, clientStream, bidiStream } = service.method;
const { answerOnce, answerMany } = createAnswers(contract);

const wanted = fromBinary(contract.serverRequest, (await buffer(process.stdin)).subarray(PREFIX_BYTES));
const contexts = new WeakMap<Message, HandlerContext>();
const contextOf = (request: Message) => contexts.get(request) as HandlerContext;

const dispatched: Implementation = {
  desc: { ...service, methods: [unary, idempotentUnary, serverStream] },
  handlers: {
    unary: (request: Message) => answerOnce(unary, [request], contextOf(request)),
    idempotentUnary: (request: Message) => answerOnce(idempotentUnary, [request], contextOf(request)),
    serverStream: (request: Message) => answerMany(serverStream, [request], contextOf(request)),
  },
  isDiagnostic: false,
};

/** The petstore's codes without their reasons: the suite accepts no details in errors of the server itself. */
const errors: ErrorCatalogue = {
  ...petstore,
  rpcError: (reason, message, cause) => new RpcError(message, petstore.rpcError(reason, "").code, undefined, [], cause),
};

const log = pino({ level: "error" }, pino.destination(2));
const health = createHealth([service.typeName]);
const dispatcher = createDispatcher([dispatched, healthService(health)], {
  deps: { ...realTime, log },
  secret: "",
  errors,
  // The suite is one caller, with many streams at a time.
  streamLimits: { ...defaultStreamLimits, streamsPerCaller: defaultStreamLimits.streams },
});

/** The certificate that the suite gives the server. It never changes. */
function tlsOf({ cert, key }: { readonly cert: Uint8Array; readonly key: Uint8Array }): ServerTls {
  const options = { cert: Buffer.from(cert), key: Buffer.from(key), minVersion: MIN_VERSION } as const;
  const shown = { options, context: createSecureContext(options) };
  const nothing = async () => {};
  return {
    certificates: { current: () => shown, onChange() {}, reload: nothing, [Symbol.asyncDispose]: nothing },
  };
}

/**
 * A router that remembers the context of each call. It can write the suite's messages within `Any` as JSON.
 */
function observed(router: ConnectRouter): ConnectRouter {
  const rpc = (method: DescMethod, handle: Handle, given?: object) =>
    router.rpc(
      method,
      ((request, context) => {
        contexts.set(request, context);
        return handle(request, context);
      }) as Handle as never,
      { ...given, jsonOptions: { ...strictJson, registry } },
    );
  return { ...router, rpc: rpc as ConnectRouter["rpc"] };
}

/** A stream that bypasses Connect. Its response gets the trailers when it ends. */
async function* streamed(...[method, request, incoming]: Parameters<typeof dispatcher.stream>) {
  const { headers: requestHeader, responseHeaders: responseHeader, timeoutMs, origin } = incoming;
  const responseTrailer = new Headers();
  const context = { requestMethod: "POST", requestHeader, responseHeader, responseTrailer, timeoutMs: () => timeoutMs };
  contexts.set(request, context as HandlerContext);
  try {
    yield* dispatcher.stream(method, request, incoming);
  } finally {
    const response = origin?.response as ServerResponse | undefined;
    response?.addTrailers(Object.fromEntries(responseTrailer));
  }
}

const server = await startRpcServer({
  host: "127.0.0.1",
  port: 0,
  log,
  health,
  tls: wanted.useTls && wanted.serverCreds ? tlsOf(wanted.serverCreds) : undefined,
  maxBytes: wanted.messageReceiveLimit || undefined,
  dispatcher: {
    ...dispatcher,
    stream: streamed,
    routes(router) {
      const all = observed(router);
      dispatcher.routes(all);
      all.rpc(clientStream, (requests, context) => answerOnce(clientStream, requests, context));
      all.rpc(bidiStream, (requests, context) => answerMany(bidiStream, requests, context));
    },
  },
});

const answer = toBinary(
  contract.serverResponse,
  create(contract.serverResponse, { host: "127.0.0.1", port: server.port, pemCert: wanted.serverCreds?.cert }),
);
const length = Buffer.alloc(PREFIX_BYTES);
length.writeUInt32BE(answer.length);
process.stdout.write(Buffer.concat([length, answer]));
