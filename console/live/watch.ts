/**
 * Watches the store by `GET /events`, over one connection for all kinds of records: over HTTP/1.1 a browser opens six to an
 * origin. It uses fetch, since an EventSource can't send a credential. A hidden page holds no connection.
 */
import { batch } from "@preact/signals";
import { readLines } from "../../packages/client/lines.ts";
import { baseUrl } from "../petstore.ts";
import { type Kind, missed, tell } from "../records/changes.ts";
import { credential, isAsked, ofCaller, sessions } from "../session.ts";
import { type LiveEvent, readTold, type Told } from "./events.ts";
import { createFollowing } from "./follow.ts";
import { refusalOf } from "./refusal.ts";
import { denied, kinds, liveState } from "./state.ts";

/** Older ones are forgotten. */
const MAX_EVENTS = 200;

/** Newest first. */
export const events = ofCaller<readonly LiveEvent[]>([]);

/** The address of the events of these kinds of records. */
export const eventsUrl = (asked: readonly Kind[]): string =>
  `${baseUrl}/events${asked.length < kinds.length ? `?types=${asked}` : ""}`;

async function* open(asked: readonly Kind[], lastId: string, signal: AbortSignal): AsyncGenerator<Told> {
  const response = await fetch(eventsUrl(asked), {
    signal,
    cache: "no-store",
    headers: {
      Accept: "application/x-ndjson",
      ...(lastId !== "" && { "Last-Event-ID": lastId }),
      ...(credential.peek() !== "" && { Authorization: `Bearer ${credential.peek()}` }),
    },
  });
  if (!response.ok || !response.body) throw await refusalOf(response);
  for await (const line of readLines(response.body)) {
    const told = readTold(line);
    if (told.error?.code === "UNAUTHENTICATED") isAsked.value = true; // the credential has ended, and so has the stream
    yield told;
  }
}

function take(event: LiveEvent): void {
  // An event may come again after a reconnection.
  if (events.peek().some(({ id, kind }) => id === event.id && kind === event.kind)) return;
  batch(() => {
    events.value = [event, ...events.peek()].slice(0, MAX_EVENTS);
    tell({ kind: event.kind, record: event.record, isDeleted: event.what === "deleted", isOwn: false });
  });
}

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done); // otherwise each attempt would leave one behind
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });

const newFollowing = () =>
  createFollowing({
    open,
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
