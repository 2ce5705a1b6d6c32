/** Watches changes without a gap, however often the stream ends. */
import type { DescMessage, DescMethodServerStreaming, Message } from "@bufbuild/protobuf";
import type { CallOptions, Calls } from "./calls.ts";
import { type ErrorCode, type PetstoreError, petstoreError } from "./errors.ts";
import { recordOf } from "./records.ts";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;

/** Attempts of a watch that has received nothing yet: the address may be wrong. */
const MAX_FIRST_ATTEMPTS = 4;

/** Codes for the end of a stream after which another one may continue. */
const PASSING: readonly ErrorCode[] = [
  "CANCELLED", // not by the caller, whose signal is checked, too
  "DEADLINE_EXCEEDED",
  "OVERLOADED",
  "RATE_LIMITED",
  "SLOW_CONSUMER",
  "TOO_MANY_STREAMS",
  "UNAVAILABLE",
  "UNREACHABLE",
];

interface Event<Type extends string, T> {
  readonly type: Type;
  /** Unique among the events of this kind of records, and the same if it comes again. */
  readonly id: string;
  /** The record as it was then, with its `etag`; the last state of a deleted one. */
  readonly record: T;
  /** Where a later `watch` with the same filter continues. */
  readonly resumeToken: string;
}

/** What happened to a record, and when (RFC 3339). */
export type Change<T> = Event<"created" | "updated" | "deleted", T> & { readonly time: string };

/** An existing record, in a snapshot. */
export type Present<T> = Event<"present", T>;

export type SnapshotMark =
  /** All existing records follow, and whatever came before is void. */
  | { readonly type: "snapshot" }
  /** The end of the existing records. Changes follow. */
  | { readonly type: "synced"; readonly resumeToken: string };

export interface WatchOptions extends Pick<CallOptions, "signal" | "headers"> {
  /** Is told when a stream has begun, and when one has ended, with the error if it was by one: then another one is opened. */
  readonly onConnection?: ((isOpen: boolean, error?: PetstoreError) => void) | undefined;
}

export interface Resumable {
  readonly resumeToken?: string | undefined;
  readonly snapshot?: boolean | undefined;
}

/** One message of a stream: where to resume after it, and what it says unless it is a heartbeat. */
export interface StreamItem {
  readonly resumeToken: string;
  readonly event?: object | undefined;
}

/**
 * Yields the events of a stream that `open` opens, and when it ends, of another one that continues where it ended. Ends when
 * the signal is aborted.
 */
export async function* resumed(
  name: string,
  open: (resumeToken: string, signal: AbortSignal) => AsyncIterable<StreamItem>,
  filter: Resumable,
  { signal, onConnection }: WatchOptions,
  { random, sleep, logger }: Pick<Calls, "random" | "sleep" | "logger">,
): AsyncGenerator<object> {
  let { resumeToken = "" } = filter;
  let isKnown = false;
  for (let attempt = 1; !signal?.aborted; attempt++) {
    let error: PetstoreError | undefined;
    try {
      for await (const item of untilSilent((own) => open(resumeToken, own), signal, sleep)) {
        if (signal?.aborted) return;
        if (filter.snapshot && !resumeToken) yield { type: "snapshot" };
        if (signal?.aborted) return; // meanwhile
        isKnown = true;
        if (attempt > 0) onConnection?.(true);
        attempt = 0;
        resumeToken = item.resumeToken;
        if (item.event) yield { ...item.event, resumeToken };
      }
    } catch (thrown) {
      if (signal?.aborted) return;
      error = petstoreError(thrown);
      const beginsAgain = error.code === "EVENTS_EXPIRED" && filter.snapshot && resumeToken;
      // A stream ends when its credential becomes invalid. The next one asks for a new credential.
      const isPassing = PASSING.includes(error.code) || (error.code === "UNAUTHENTICATED" && attempt === 0);
      const isOver = !isPassing || (!isKnown && attempt === MAX_FIRST_ATTEMPTS);
      if (isOver && !beginsAgain) throw error;
      if (beginsAgain) resumeToken = "";
    }
    if (signal?.aborted) return;
    onConnection?.(false, error);
    const jitter = random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
    const pause = Math.max(jitter, error?.retryAfterMs ?? 0);
    logger?.warn(`${name}: ${error?.code ?? "the stream has ended"}, again in ${Math.round(pause)} ms`);
    await sleep(pause, signal);
  }
}

/** The petstore sends a message every 15 s at least. A stream that is silent for three times as long is dead. */
const SILENCE_MS = 45_000;

/**
 * Yields the messages of a stream, and throws when none has come for SILENCE_MS. The stream is closed however the loop ends.
 */
async function* untilSilent<M>(
  open: (signal: AbortSignal) => AsyncIterable<M>,
  signal: AbortSignal | undefined,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
): AsyncGenerator<M> {
  const over = new AbortController();
  let isSilent = false;
  const giveUp = () => {
    isSilent = true;
    over.abort();
  };
  try {
    const stream = open(signal ? AbortSignal.any([signal, over.signal]) : over.signal)[Symbol.asyncIterator]();
    for (;;) {
      const answered = new AbortController();
      void sleep(SILENCE_MS, answered.signal).then(() => answered.signal.aborted || giveUp());
      const next = await stream.next().finally(() => answered.abort());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    // Without this, it would look as if the caller had cancelled.
    throw isSilent ? new Error(`nothing came for ${SILENCE_MS / 1000} s`) : error;
  } finally {
    over.abort();
  }
}

/** What the messages of all services' streams have in common. */
type Answer = { readonly resumeToken: string; readonly response: { readonly case?: string; readonly value?: Message } };

/** The messages of an RPC that streams the changes of one kind of records. */
export async function* eventsOf({ output }: DescMethodServerStreaming, messages: AsyncIterable<Message>) {
  const event = output.field.event?.message as DescMessage;
  for await (const message of messages) {
    const { resumeToken, response } = message as unknown as Answer;
    if (response.case === "event") yield { resumeToken, event: eventOf(event, response.value as Message) };
    else yield { resumeToken, event: response.case === "synced" ? { type: "synced" } : undefined };
  }
}

/** Undefined for what only a later version knows. */
function eventOf(desc: DescMessage, message: Message): object | undefined {
  const { id, type, time, ...rest } = recordOf(desc, message) as Record<string, unknown>;
  const [record] = Object.values(rest);
  return isEventType(type) && record ? { type, id, ...(time !== undefined && { time }), record } : undefined;
}

export const isEventType = (type: unknown): boolean =>
  ["present", "created", "updated", "deleted"].includes(type as string);
