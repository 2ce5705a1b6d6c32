/** Makes calls: with what callers leave out, and again if they failed and that is safe. */
import { type DescMethodServerStreaming, type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { PetstoreError, petstoreError } from "./errors.ts";
import { messageOf } from "./records.ts";

const MAX_RETRIES = 3;
const TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 100;

/** The field that makes a create safe to repeat (AIP-155). */
const KEY = "requestId";

export interface CallOptions {
  /** Ends it when it is aborted: a call fails with CANCELLED, a watch ends without an error. */
  readonly signal?: AbortSignal | undefined;
  /** For all attempts together, in milliseconds. 0 for no limit. */
  readonly timeout?: number | undefined;
  /** Sent with each request of it, in place of those of the same names that the client has. */
  readonly headers?: HeadersInit | undefined;
}

/** Such as `console`. */
export interface Logger {
  debug(text: string): void;
  warn(text: string): void;
}

export interface CommonOptions {
  /** An API key or a token, or a function that returns one for each attempt; sent as `Authorization: Bearer`. */
  readonly credential?: string | (() => string | Promise<string>) | undefined;
  /** Most repetitions of one call. 3 by default. */
  readonly maxRetries?: number | undefined;
  /** How long a call takes at most, with all its attempts, in milliseconds. 10,000 by default, 0 for no limit. */
  readonly timeout?: number | undefined;
  /** Sent with each request. */
  readonly headers?: HeadersInit | undefined;
  /** Is told of each call, attempt and reconnection. */
  readonly logger?: Logger | undefined;
}

/** What tests bring themselves. */
export interface Deps {
  readonly clock: () => number;
  readonly random: () => number;
  /** Resolves after `ms` milliseconds, or when the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

export type Calls = ReturnType<typeof createCalls>;

export function createCalls(transport: Transport, options: CommonOptions, deps: Deps) {
  const { credential, maxRetries = MAX_RETRIES, timeout: usualTimeout = TIMEOUT_MS, logger } = options;
  const { clock, random, sleep } = deps;

  /**
   * The headers of a request: those of all, those of this one, and the credential. One that does not come is waited for no
   * longer than `ms`, nor after the signal is aborted.
   */
  function headers(given: HeadersInit | undefined, signal?: AbortSignal, ms = Number.POSITIVE_INFINITY) {
    const made = headersOf(given);
    if (typeof credential !== "function") return made;
    const came = new AbortController();
    const late = sleep(ms, signal ? AbortSignal.any([signal, came.signal]) : came.signal).then(() => {
      if (signal?.aborted) throw cancelled(signal);
      throw new PetstoreError("DEADLINE_EXCEEDED", "the credential did not come in time", { status: 504 });
    });
    return Promise.race([made, late]).finally(() => came.abort());
  }

  async function headersOf(given: HeadersInit | undefined): Promise<Headers> {
    try {
      const all = new Headers(options.headers);
      for (const [name, value] of new Headers(given)) all.set(name, value);
      const shown = typeof credential === "function" ? await credential() : credential;
      if (shown !== undefined) all.set("Authorization", `Bearer ${shown}`);
      return all;
    } catch (cause) {
      throw notSent(cause);
    }
  }

  /**
   * Gives every create its own idempotency key. Repeats reads and creates that got no answer or the answer "not now"; repeats
   * updates and deletions only if their rate was exceeded, because then nothing was done. Pauses are random (full jitter), but
   * never shorter than the petstore asks for. If a pause would end after the call's deadline, there is no repetition. A create
   * that may have succeeded in an earlier attempt fails as that one did, unless a later attempt learns the outcome.
   */
  async function unary(method: DescMethodUnary, request: object, options: CallOptions = {}): Promise<Message> {
    const { signal, timeout = usualTimeout } = options;
    const isKeyed = KEY in method.input.field;
    const { [KEY]: key = newKey() } = request as { readonly [KEY]?: string | undefined };
    const message = encodable(method, isKeyed ? { ...request, [KEY]: key } : request);
    const isRepeatable = isKeyed || method.idempotency === Level.NO_SIDE_EFFECTS;
    const limit = timeoutFor(timeout);
    const begin = clock();
    const deadline = begin + (limit ?? Number.POSITIVE_INFINITY);
    let inDoubt: PetstoreError | undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        const all = await headers(options.headers, signal, deadline - clock());
        const left = limit && Math.max(1, deadline - clock());
        const answer = await transport.unary(method, signal, left, all, message);
        logger?.debug(`${method.name}: ${clock() - begin} ms`);
        return answer.message;
      } catch (thrown) {
        let error = petstoreError(thrown);
        const pause = Math.max(random() * FIRST_PAUSE_MS * 2 ** attempt, error.retryAfterMs ?? 0);
        const isWorthIt = attempt <= maxRetries && passes(error, isRepeatable) && clock() + pause < deadline;
        if (isWorthIt && !signal?.aborted) {
          if (isKeyed && error.code !== "RATE_LIMITED") inDoubt = error;
          logger?.warn(`${method.name}: ${error.code}, again in ${Math.round(pause)} ms`);
          await sleep(pause, signal);
          if (!signal?.aborted) continue;
          error = cancelled(signal);
        }
        if (inDoubt && isBeforeKey(error)) error = inDoubt;
        logger?.debug(`${method.name}: ${error.code}, ${clock() - begin} ms`);
        throw error;
      }
    }
  }

  async function* stream(method: DescMethodServerStreaming, request: object, options: CallOptions) {
    const message = encodable(method, request);
    const all = await headers(options.headers, options.signal);
    yield* (await transport.stream(method, options.signal, undefined, all, only(message))).message;
  }

  return { ...deps, logger, headers, unary, stream };
}

const cancelled = ({ reason }: AbortSignal) => petstoreError(ConnectError.from(reason, Code.Canceled));

const notSent = (cause: unknown) => new PetstoreError("NOT_SENT", (cause as Error).message, { cause });

function encodable({ input }: DescMethodUnary | DescMethodServerStreaming, request: object): Message {
  try {
    const message = messageOf(input, request);
    toBinary(input, message); // otherwise it would look as if the connection had failed
    return message;
  } catch (cause) {
    throw notSent(cause);
  }
}

async function* only<T>(message: T): AsyncGenerator<T> {
  yield message;
}

/** Whether the same call may succeed a moment later, and does no harm. */
function passes({ code }: PetstoreError, isRepeatable: boolean): boolean {
  if (code === "RATE_LIMITED") return true;
  return isRepeatable && (code === "UNAVAILABLE" || code === "OVERLOADED" || code === "UNREACHABLE");
}

/** Whether it may come before a key is looked at, as RATE_LIMITED does: then an earlier attempt may have succeeded. */
const isBeforeKey = ({ status, code }: PetstoreError): boolean =>
  [401, 403, 413, 429, 500].includes(status) || code === "CONCURRENT_UPDATE" || code === "NOT_SENT";

/**
 * A timeout that every protocol can send: gRPC takes eight digits at most, and none takes fractions. As in Connect, 0 and less
 * means no limit.
 */
const timeoutFor = (ms: number): number | undefined => (ms > 0 ? Math.min(Math.ceil(ms), 99_999_999) : undefined);

/** 128 random bits. Not `randomUUID`, which pages have over https only. */
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
