/** Follows what happens in the store, and begins again whatever ends it. The client itself goes on where a stream has ended. */
import type { PetstoreError, WatchOptions } from "@petstore/client";
import type { Kind } from "../records/changes.ts";
import { kinds as allKinds, type LiveEvent, type LiveState, readScopes } from "./state.ts";

export interface FollowOptions {
  readonly watch: (
    filter: { readonly types: readonly Kind[]; readonly resumeToken: string },
    options: WatchOptions,
  ) => AsyncGenerator<LiveEvent>;
  readonly take: (event: LiveEvent) => void;
  /** Events may have been missed: what was read before may be out of date. */
  readonly lost: () => void;
  /** The caller may not read these records: the stream continues without them. */
  readonly deny: (kind: Kind) => void;
  /** The stream was refused, and would be again. */
  readonly refuse: (error: PetstoreError) => void;
  readonly show: (state: LiveState) => void;
  /** Resolves after `ms` milliseconds, or when the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds since any fixed moment. */
  readonly now: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

const MAX_PAUSE_MS = 10_000;
/** Attempts in a row without an answer that still count as reconnecting; after more, the page says that it is offline. */
const OFFLINE_AFTER = 3;
/** After a longer time without a connection events are not resumed: what is shown is read again instead. */
const MAX_AWAY_MS = 10 * 60_000;

/** Codes of refusals that another attempt would meet again. */
const FINAL = new Set(["UNAUTHENTICATED", "PERMISSION_DENIED", "ROUTE_NOT_FOUND", "NOT_ACCEPTABLE", "INVALID_QUERY"]);
/** The place is not known any more, or none of this petstore's: the only way on is to begin again. */
const LOST = new Set(["EVENTS_EXPIRED", "INVALID_QUERY"]);

export function createFollowing(options: FollowOptions) {
  const { watch, take, lost, deny, refuse, show, sleep, now, random } = options;
  let resumeToken = "";
  let leftAt = now();
  let kinds = allKinds;
  let unanswered = 0;

  function reconnect(error: PetstoreError | undefined): void {
    unanswered = error && error.code !== "UNREACHABLE" ? 0 : unanswered + 1;
    show(unanswered > OFFLINE_AFTER ? "offline" : "reconnecting");
  }

  /** Watches until the signal is aborted, or the client gives up. Calls `begin` when a stream has begun. */
  async function follow(signal: AbortSignal, begin: () => void): Promise<void> {
    let isNew = resumeToken === "";
    const onConnection = (isOpen: boolean, error?: PetstoreError) => {
      if (signal.aborted) return;
      if (!isOpen) return reconnect(error);
      unanswered = 0;
      show("live");
      begin();
      if (isNew) lost();
      isNew = false;
    };
    for await (const event of watch({ types: kinds, resumeToken }, { signal, onConnection })) {
      // The event first: if taking it fails, the stream must not resume behind it.
      take(event);
      resumeToken = event.resumeToken;
    }
  }

  /** Continues where it last ended, until the signal is aborted or the stream is refused; then resolves. */
  async function run(signal: AbortSignal): Promise<void> {
    if (now() - leftAt > MAX_AWAY_MS) resumeToken = "";
    while (!signal.aborted) {
      let hasBegun = false;
      try {
        await follow(signal, () => {
          hasBegun = true;
        });
      } catch (thrown) {
        if (signal.aborted) break;
        const error = thrown as PetstoreError;
        const { code, missingScope, retryAfterMs = 0 } = error;
        const missing = kinds.find((kind) => readScopes[kind] === missingScope);
        if (missing) {
          kinds = kinds.filter((kind) => kind !== missing);
          deny(missing);
          if (kinds.length > 0) continue;
        }
        // Of a stream that ends, only the answer to the next request says which scope is missing, or whether a place is known.
        const mayPass = code !== "UNAUTHENTICATED" && kinds.length > 0;
        const isPassing = mayPass && (hasBegun || (LOST.has(code) && resumeToken !== ""));
        if (LOST.has(code)) resumeToken = "";
        if (FINAL.has(code) && !isPassing) {
          show("refused");
          return refuse(error);
        }
        reconnect(error);
        await sleep(Math.max(retryAfterMs, random() * MAX_PAUSE_MS), signal);
      }
    }
    leftAt = now();
  }
  return { run };
}
