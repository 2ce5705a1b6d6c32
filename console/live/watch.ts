/**
 * Watches the store by `GET /events`, over one connection for all kinds of records: over HTTP/1.1 a browser opens six to an
 * origin. A hidden page holds no connection.
 */
import { batch } from "@preact/signals";
import { sleep } from "../../packages/client/petstore.ts";
import { baseUrl, petstore } from "../petstore.ts";
import { type Kind, missed, tell } from "../records/changes.ts";
import { isAsked, ofCaller, sessions } from "../session.ts";
import { createFollowing } from "./follow.ts";
import { denied, kinds, type LiveEvent, liveState } from "./state.ts";

/** Older ones are forgotten. */
const MAX_EVENTS = 200;

/** Newest first. */
export const events = ofCaller<readonly LiveEvent[]>([]);

/** The address of the events of these kinds of records. */
export const eventsUrl = (asked: readonly Kind[]): string =>
  `${baseUrl}/events${asked.length < kinds.length ? `?types=${asked}` : ""}`;

function take(event: LiveEvent): void {
  const { id, recordType: kind, record, type } = event;
  // An event may come again after a reconnection.
  if (events.peek().some((other) => id === other.id && kind === other.recordType)) return;
  batch(() => {
    events.value = [event, ...events.peek()].slice(0, MAX_EVENTS);
    tell({ kind, record, isDeleted: type === "deleted", isOwn: false });
  });
}

const newFollowing = () =>
  createFollowing({
    watch: (filter, options) => petstore.watch(filter, options),
    take,
    lost: () => void missed.value++,
    deny: (kind) => {
      denied.value = [...denied.peek(), kind];
    },
    refuse: ({ code }) => {
      if (code === "UNAUTHENTICATED") isAsked.value = true;
    },
    show: (state) => {
      liveState.value = state;
    },
    sleep,
    now: Date.now,
    random: Math.random,
  });

/** Follows the events while the page is visible, as the caller who is signed in. */
export function watch(): void {
  let following = newFollowing();
  let over = new AbortController();
  const go = () => {
    over.abort();
    over = new AbortController();
    if (document.hidden) liveState.value = "resting";
    else void following.run(over.signal);
  };
  document.addEventListener("visibilitychange", go);
  // Another caller may see other records, so the stream begins anew.
  sessions.subscribe(() => {
    following = newFollowing();
    liveState.value = "connecting";
    go();
  });
}
