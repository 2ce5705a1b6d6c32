/** Changes as they happen, without a gap, however often the stream that brings them ends. */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { petstoreError, type Reason } from "./errors.ts";
import { EventType } from "./gen/petstore/common/v1/watch_pb.ts";
import { heard } from "./heard.ts";
import type { RetryDeps } from "./retry.ts";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;

/** Of a watch that never heard anything: the address may be wrong. */
const MAX_FIRST_ATTEMPTS = 4;

/** Ends of a stream after which another one may bring what follows. */
const passing: readonly Reason[] = [
  "CANCELLED", // not by the caller: that is looked at before
  "DEADLINE_EXCEEDED",
  "OVERLOADED",
  "RATE_LIMITED",
  "SLOW_CONSUMER",
  "TOO_MANY_STREAMS",
  "UNAVAILABLE",
  "UNREACHABLE",
];

interface Told<Type extends string, T> {
  readonly type: Type;
  /** The same each time that this is told, and of nothing else. */
  readonly id: string;
  /** The record as it was then, with its `etag`; the last state of one that was deleted. */
  readonly record: T;
  /** What a later `watch` goes on after, with the same filter. */
  readonly resumeToken: string;
}

/** What has become of a record, and when. */
export type Change<T> = Told<"created" | "updated" | "deleted", T> & { readonly time: Date };

/** What a watch with a snapshot tells besides. */
export type Snapshot<T> =
  /** What is there follows, and nothing that was told before counts any more. */
  | { readonly type: "snapshot" }
  | Told<"present", T>
  /** That was all that is there. Changes follow. */
  | { readonly type: "synced"; readonly resumeToken: string };

/** Changes of T by a filter F. */
export interface Watched<F, T> {
  /**
   * Changes from now on, from `resumeToken` on, or with `snapshot: true` after all records that are there; until the loop is
   * left or the signal is aborted. A stream that ends, be it with its credential, or is silent for 45 s, is followed by another
   * that goes on where it ended, however long the petstore is away: nothing is missing, and what comes twice has the same `id`.
   *
   * Rejects with a PetstoreError when the petstore can't be reached from the beginning (after four attempts) or refuses;
   * with EVENTS_EXPIRED when it no longer knows what has changed since the token, unless there is a snapshot to begin again
   * with.
   */
  watch<S extends boolean = false>(
    filter?: F & { readonly snapshot?: S },
    options?: Pick<CallOptions, "signal" | "headers">,
  ): AsyncGenerator<Change<T> | (S extends true ? Snapshot<T> : never)>;
}

interface Event {
  readonly id: string;
  readonly type: EventType;
  readonly time?: Timestamp | undefined;
}

/** What the streams of all services say. */
interface Response {
  readonly resumeToken: string;
  readonly response:
    | { case: "event"; value: Event }
    | { case: "synced"; value: unknown }
    | { case: "heartbeat"; value: unknown }
    | { case: undefined; value?: undefined };
}

type EventOf<R extends Response> = Extract<R["response"], { case: "event" }>["value"];

interface Resumable {
  readonly resumeToken?: string | undefined;
  readonly snapshot?: boolean | undefined;
}

/** A watch, from the RPC that streams it. */
export function watched<F extends Resumable, R extends Response, T>(
  open: (request: F & Resumable, options: CallOptions) => AsyncIterable<R>,
  recordOf: (event: EventOf<R>) => T | undefined,
  { random, sleep }: Pick<RetryDeps, "random" | "sleep">,
): Watched<F, T> {
  async function* watch(filter?: F, options: CallOptions = {}): AsyncGenerator<Change<T> | Snapshot<T>> {
    const { signal } = options;
    let resumeToken = filter?.resumeToken ?? "";
    let isKnown = false;
    for (let attempt = 1; ; attempt++) {
      let retryAfterMs = 0;
      try {
        const request = { ...(filter as F), resumeToken };
        for await (const message of heard((own) => open(request, { ...options, signal: own }), signal, sleep)) {
          if (filter?.snapshot && !resumeToken) yield { type: "snapshot" };
          isKnown = true;
          attempt = 0;
          resumeToken = message.resumeToken;
          const change = changeOf(message, recordOf);
          if (change) yield change;
        }
      } catch (thrown) {
        const error = petstoreError(thrown);
        const beginsAgain = error.reason === "EVENTS_EXPIRED" && filter?.snapshot && resumeToken;
        // A stream ends with its credential. For the next one another is asked for.
        const isPassing = passing.includes(error.reason) || (error.reason === "UNAUTHENTICATED" && attempt === 0);
        const isOver = !isPassing || (!isKnown && attempt === MAX_FIRST_ATTEMPTS);
        if (signal?.aborted || (isOver && !beginsAgain)) throw error;
        if (beginsAgain) resumeToken = "";
        if ("retryAfterMs" in error) retryAfterMs = error.retryAfterMs ?? 0;
      }
      if (!signal?.aborted)
        await sleep(Math.max(random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt), retryAfterMs), signal);
    }
  }
  // What the caller is told follows from what was asked for.
  return { watch: watch as Watched<F, T>["watch"] };
}

/** Nothing for a heartbeat, and for what only a later version knows. */
function changeOf<R extends Response, T>(
  { resumeToken, response }: R,
  recordOf: (event: EventOf<R>) => T | undefined,
): Change<T> | Snapshot<T> | undefined {
  if (response.case === "synced") return { type: "synced", resumeToken };
  if (response.case !== "event") return undefined;
  const { id, type, time } = response.value;
  const record = recordOf(response.value);
  if (record === undefined) return undefined;
  const told = { id, record, resumeToken };
  if (type === EventType.PRESENT) return { type: "present", ...told };
  const known = time && typeOf(type);
  return known && { type: known, ...told, time: timestampDate(time) };
}

function typeOf(type: EventType) {
  if (type === EventType.CREATED) return "created";
  if (type === EventType.UPDATED) return "updated";
  return type === EventType.DELETED ? "deleted" : undefined;
}
