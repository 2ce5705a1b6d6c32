/** The client's end of one link: sends calls as frames, takes answers, and settles the calls when the link ends. */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import querystring from "node:querystring";
import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { rpcName } from "../call.ts";
import { markNeverRan } from "../client/failed-call.ts";
import { LinkRequestSchema, type LinkResponse, LinkResponseSchema } from "../gen/link/internal/v1/link_service_pb.ts";
import { InFlight } from "../in-flight.ts";
import type { ClientCall } from "./client-call.ts";
import { bytesOfCall, LINK_VERSION, LinkViolation, onceATurn, parts, readFrames, toFrame } from "./frames.ts";

/** Time for the service's hello, which it sends at once. Without one calls are plain RPCs: a proxy may buffer the stream. */
export const HELLO_MS = 2_000;

export type ClientStream = NonNullable<Awaited<ReturnType<typeof openStream>>>;

/**
 * Opens a link on a fresh stream. Resolves to undefined if the other side has no links or another version, or does not answer.
 * Rejects if the stream is lost before: no call was sent on it yet, so calls that wait for it certainly never ran. `onReady` is
 * called when more can be sent, `onOver` when the link takes no more calls: the service stops, or the stream is lost. Calls
 * already sent may be answered.
 */
export function openStream(
  stream: ClientHttp2Stream,
  { onReady, onOver }: { readonly onReady: () => void; readonly onOver: () => void },
) {
  const opened = {
    /** False while flow control holds back what was sent. */
    canSend: () => !isBlocked,
    /** Whether every call that was sent is answered. */
    isIdle: () => unanswered.size === 0,
    send,
  };
  const { promise, resolve, reject } = Promise.withResolvers<typeof opened | undefined>();
  /** Calls that were sent and not answered, also those that were given up: the service answers each of them. */
  const unanswered = new InFlight<ClientCall>();
  const numbers = new Map<DescMethodUnary, number>();
  const reader = readFrames(LinkResponseSchema, take);
  let state: "new" | "open" | "draining" | "over" = "new";
  let cancels = new Set<number>();
  let isBlocked = false;
  let refusal = "";
  // setImmediate lets node first read what arrived while this process was busy.
  const patience = setTimeout(() => setImmediate(() => state === "new" && refuse()), HELLO_MS);

  function take({ hello, answers, drain }: LinkResponse): void {
    if (state === "new") greet(hello);
    else if (hello) throw new LinkViolation("it says hello twice");
    if (state === "over") return;
    for (const answer of answers) {
      const call = unanswered.take(answer.id);
      if (!call) throw new LinkViolation(`it answers call ${answer.id}, which it was not sent`);
      cancels.delete(answer.id); // the next call may have this number
      call.answer(answer);
    }
    if (drain && state === "open") {
      state = "draining";
      onOver();
      stream.end();
    }
  }

  function greet(hello: LinkResponse["hello"]): void {
    if (!hello) throw new LinkViolation("it does not say hello");
    clearTimeout(patience);
    if (hello.version === LINK_VERSION) {
      state = "open";
      resolve(opened);
    } else refuse();
  }

  /** Sends calls together. */
  function send(calls: readonly ClientCall[]): void {
    const methods: { number: number; name: string }[] = [];
    const numberOf = (method: DescMethodUnary): number => {
      let number = numbers.get(method);
      if (number === undefined) {
        number = numbers.size + 1;
        numbers.set(method, number);
        methods.push({ number, name: rpcName(method) });
      }
      return number;
    };
    const inits = calls.map((call) => {
      const id = unanswered.add(call);
      call.onGiveUp = () => cancel(id);
      const { method, headers, bytes, deadline } = call.made;
      return { id, method: numberOf(method), timeoutMs: deadline.timeoutMs() ?? 0, ...headers, message: bytes };
    });
    for (const part of parts(inits, bytesOfCall)) write({ methods: methods.splice(0), calls: part });
  }

  function write(message: MessageInitShape<typeof LinkRequestSchema>): void {
    isBlocked = !stream.write(toFrame(LinkRequestSchema, message));
  }

  const tellCancels = onceATurn(() => {
    if (state === "open" && cancels.size > 0) write({ cancels: [...cancels] });
    cancels = new Set();
  });
  function cancel(id: number): void {
    cancels.add(id);
    tellCancels();
  }

  /** The other side has no link for us, and has run nothing. */
  function refuse(): void {
    state = "over";
    clearTimeout(patience);
    resolve(undefined);
    stream.close(constants.NGHTTP2_CANCEL);
  }

  function lose(cause?: unknown): void {
    const before = state;
    if (before === "over") return;
    state = "over";
    clearTimeout(patience);
    const why = refusal || (cause instanceof Error ? cause.message : "its stream was closed");
    // Without `cause`, by which `neverRan` would take calls that were sent on a refused stream for calls that never ran.
    const error = new ConnectError(`the link is lost: ${why}`, Code.Unavailable);
    if (before === "new") reject(markNeverRan(error));
    for (const call of unanswered.all()) call.lose(error);
    if (before === "open") onOver();
  }

  function respond(headers: IncomingHttpHeaders & { readonly ":status"?: number }): void {
    // A gRPC status among the headers is a response without messages ("Trailers-Only").
    if (state === "new" && (headers[":status"] !== 200 || headers["grpc-status"] !== undefined)) refuse();
  }

  function read(chunk: Buffer): void {
    if (state === "over") return;
    try {
      reader.read(chunk);
    } catch (error) {
      lose(error);
      stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  stream.on("response", respond);
  stream.on("data", read);
  stream.on("trailers", (trailers) => {
    if (state === "new") refuse();
    refusal = querystring.unescape(`${trailers["grpc-message"] ?? ""}`); // leaves alone what can't be decoded
  });
  stream.on("drain", () => {
    isBlocked = false;
    if (state === "open") onReady();
  });
  stream.on("error", lose);
  stream.once("close", () => lose());
  stream.once("end", () => {
    lose();
    stream.close();
  });
  stream.write(toFrame(LinkRequestSchema, { hello: { version: LINK_VERSION } }));
  return promise;
}
