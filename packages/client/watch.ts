/** Watches changes without a gap, however often the stream ends. */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { petstoreError, type Reason } from "./errors.ts";
import { EventType } from "./gen/petstore/common/v1/watch_pb.ts";
import { heard } from "./heard.ts";
import type { RetryDeps } from "./retry.ts";

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;

/** Attempts of a watch that has received nothing yet: the address may be wrong. */
const MAX_FIRST_ATTEMPTS = 4;

/** Reasons for the end of a stream after which another one may continue. */
const passing: readonly Reason[] = [
  "CANCELLED", // not by the caller, whose signal is checked, too
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
  /** Unique to this item, and the same if it comes again. */
  readonly id: string;
  /** The record as it was then, with its `etag`; the last state of a deleted one. */
  readonly record: T;
  /** Where a later `watch` with the same filter continues. */
  readonly resumeToken: string;
}

/** What happened to a record, and when. */
export type Change<T> = Told<"created" | "updated" | "deleted", T> & { readonly time: Date };

/** What a watch with a snapshot yields in addition. */
export type Snapshot<T> =
  /** All existing records follow, and whatever came before is void. */
  | { readonly type: "snapshot" }
  | Told<"present", T>
  /** The end of the existing records. Changes follow. */
  | { readonly type: "synced"; readonly resumeToken: string };

/** Changes of T by a filter F. */
export interface Watched<F, T> {
  /**
   * Yields changes from now on, from `resumeToken` on, or with `snapshot: true` after all existing records, until the loop is
   * left or the signal is aborted. When a stream ends, also with its credential, or is silent for 45 s, another one continues
   * where it ended, however long the petstore is unavailable. Nothing is missed, and what comes twice has the same `id`.
   *
   * Rejects with a PetstoreError if the petstore refuses, or can't be reached from the beginning (after four attempts).
   * Rejects with EVENTS_EXPIRED if the petstore no longer knows the changes since the token; with `snapshot: true` it starts
   * again with a snapshot instead.
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

/** The messages that the streams of all services have in common. */
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

/** Makes a watch from the RPC that streams the changes. */
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
        // A stream ends when its credential becomes invalid. The next one asks for a new credential.
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
  // The type of the items follows from the filter, which TypeScript can't tell here.
  return { watch: watch as Watched<F, T>["watch"] };
}

/** Undefined for a heartbeat, and for what only a later version knows. */
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
