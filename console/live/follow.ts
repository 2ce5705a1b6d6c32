/** Follows the stream of events and reconnects, whatever ends it. */
import { untilSilent } from "../../packages/client/silence.ts";
import type { Kind } from "../records/changes.ts";
import type { Told } from "./events.ts";
import { Refusal } from "./refusal.ts";
import { kinds as allKinds, type LiveState } from "./state.ts";

export interface FollowOptions {
  /**
   * Opens the stream of these kinds after this id, or from now on if it is empty. Fails with a Refusal, or with any other
   * error.
   */
  readonly open: (kinds: readonly Kind[], lastId: string, signal: AbortSignal) => AsyncIterable<Told>;
  readonly take: (event: NonNullable<Told["event"]>) => void;
  /** Events may have been missed: what was read before may be out of date. */
  readonly lost: () => void;
  /** The caller may not read these records: the stream continues without them. */
  readonly deny: (kind: Kind) => void;
  /** The stream was refused, and would be again. */
  readonly refuse: (refusal: Refusal) => void;
  readonly show: (state: LiveState) => void;
  /** Resolves after `ms` milliseconds, or when the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds since any fixed moment. */
  readonly now: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/** Attempts in a row without an answer that still count as reconnecting; after more, the page says that it is offline. */
const OFFLINE_AFTER = 3;
/** After a longer silence events are not resumed: what is shown is read again instead. */
const MAX_AWAY_MS = 10 * 60_000;

/** Codes of refusals that another attempt would meet again. */
const FINAL = new Set(["UNAUTHENTICATED", "PERMISSION_DENIED", "ROUTE_NOT_FOUND", "NOT_ACCEPTABLE", "INVALID_QUERY"]);
/** The place is not known any more, or none of this petstore's: the only way on is to begin again. */
const LOST = new Set(["EVENTS_EXPIRED", "INVALID_HEADER"]);

export function createFollowing(options: FollowOptions) {
  const { open, take, lost, deny, refuse, show, sleep, now, random } = options;
  let lastId = "";
  let heardAt = now();
  let kinds = allKinds;

  /** Resolves when the stream ended in good order. */
  async function read(signal: AbortSignal, began: () => void): Promise<void> {
    if (now() - heardAt > MAX_AWAY_MS) lastId = "";
    let isNew = lastId === "";
    for await (const { id, event, error } of untilSilent((own) => open(kinds, lastId, own), signal, sleep)) {
      if (signal.aborted) return;
      // Only the answer to the next request says which scope is missing.
      if (error?.code === "PERMISSION_DENIED") return;
      if (error) throw new Refusal(error.code, error.message);
      if (id === undefined) continue;
      began();
      if (isNew) lost();
      isNew = false;
      // The event first: if taking it fails, the stream must not resume behind it.
      if (event) take(event);
      lastId = id;
      heardAt = now();
    }
  }

  /** Continues where it last ended, until the signal is aborted or the stream is refused; then resolves. */
  async function run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    let unanswered = 0;
    while (!signal.aborted) {
      let pauseMs = 0;
      unanswered++;
      try {
        await read(signal, () => {
          failures = unanswered = 0;
          show("live");
        });
      } catch (thrown) {
        if (signal.aborted) return;
        if (thrown instanceof Refusal) {
          pauseMs = thrown.retryAfterMs;
          if (thrown.code !== "") unanswered = 0;
          if (LOST.has(thrown.code)) lastId = "";
          if (thrown.denied && kinds.includes(thrown.denied)) {
            kinds = kinds.filter((kind) => kind !== thrown.denied);
            deny(thrown.denied);
            if (kinds.length > 0) continue;
          }
          if (FINAL.has(thrown.code)) {
            show("refused");
            return refuse(thrown);
          }
        }
      }
      if (signal.aborted) return;
      failures++;
      show(unanswered > OFFLINE_AFTER ? "offline" : "reconnecting");
      // Full jitter, so that all pages do not come back at once.
      const jitter = random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
      await sleep(Math.max(pauseMs, jitter), signal);
    }
  }
  return { run };
}
