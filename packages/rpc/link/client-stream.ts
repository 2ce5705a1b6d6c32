/** The caller's end of one link: calls as frames to the service, answers from it, and what is known when it ends. */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import querystring from "node:querystring";
import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { markNeverRan } from "../client/never-ran.ts";
import type { Deadline } from "../deadline.ts";
import {
  type CallSchema,
  LinkRequestSchema,
  type LinkResponse,
  LinkResponseSchema,
} from "../gen/link/internal/v1/link_service_pb.ts";
import { InFlight } from "../in-flight.ts";
import type { ClientCall } from "./client-call.ts";
import { LinkViolation, readFrames, toFrame } from "./frames.ts";
import { onceATurn } from "./once-a-turn.ts";
import { bytesOfCall, parts } from "./parts.ts";
import { LINK_VERSION } from "./version.ts";

type CallInit = MessageInitShape<typeof CallSchema>;

/** A service greets at once. Where nothing comes, something on the way may keep back what does not end: calls go plainly then. */
export const HELLO_MS = 2_000;

export interface ClientStream {
  /** False while what was sent has to be taken first. */
  canSend(): boolean;
  /** Every call that was sent is answered. */
  isIdle(): boolean;
  /** Sends calls together. */
  send(calls: readonly ClientCall[]): void;
}

export interface ClientStreamOptions {
  /** More can be sent. */
  readonly onReady: () => void;
  /** It takes no more calls: the service stops, or the stream is lost. Those that were sent may still be answered. */
  readonly onOver: () => void;
}

/**
 * Opens a link on a fresh stream. Gives undefined when the other side has none, another version, or does not say. Rejects when the
 * stream was lost before: as nothing was sent on it, whatever was to be sent surely never ran.
 */
export function openStream(
  stream: ClientHttp2Stream,
  { onReady, onOver }: ClientStreamOptions,
): Promise<ClientStream | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<ClientStream | undefined>();
  /** Sent and not answered, given up or not: the service answers each of them. */
  const unanswered = new InFlight<ClientCall>();
  const numbers = new Map<DescMethodUnary, number>();
  const reader = readFrames(LinkResponseSchema, take);
  let state: "new" | "open" | "draining" | "over" = "new";
  let cancels = new Set<number>();
  let isBlocked = false;
  let refusal = "";
  // What has arrived while this process was busy is read first.
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
      resolve({ canSend: () => !isBlocked, isIdle: () => unanswered.size === 0, send });
    } else refuse();
  }

  function send(calls: readonly ClientCall[]): void {
    const methods: { number: number; name: string }[] = [];
    const numberOf = (method: DescMethodUnary): number => {
      let number = numbers.get(method);
      if (number === undefined) {
        number = numbers.size + 1;
        numbers.set(method, number);
        methods.push({ number, name: `${method.parent.typeName}/${method.name}` });
      }
      return number;
    };
    const inits = calls.map((call): CallInit => {
      const id = unanswered.add(call);
      call.onGiveUp = () => cancel(id);
      const { method, headers, bytes, deadline } = call.made;
      return { id, method: numberOf(method), timeoutMs: timeoutOf(deadline), ...headers, message: bytes };
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

  /** The other side has no link for us, and has done nothing. */
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
    // Without its cause: that the stream was refused says nothing of calls that were sent on it.
    const error = new ConnectError(`the link is lost: ${why}`, Code.Unavailable);
    if (before === "new") reject(markNeverRan(error));
    for (const call of unanswered.all()) call.lose(error);
    if (before === "open") onOver();
  }

  function respond(headers: IncomingHttpHeaders & { readonly ":status"?: number }): void {
    // A status of gRPC among the headers is an answer without messages ("Trailers-Only").
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

/** The longest time that a call can say: 49 days. */
const MAX_TIMEOUT_MS = 0xffff_ffff;

/** What remains of a call's time, as a number that fits: 0 where there is no limit. What is no number is no time. */
function timeoutOf(deadline: Deadline): number {
  const left = deadline.timeoutMs();
  return left === undefined ? 0 : Math.min(MAX_TIMEOUT_MS, Math.ceil(left)) || 1;
}
