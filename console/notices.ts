/** What people are told in passing. A screen reader reads it when it has time. */
import { ofCaller } from "./session.ts";

const SHOWN_MS = 6_000;

export interface Notice {
  readonly number: number;
  readonly text: string;
}

export const notices = ofCaller<readonly Notice[]>([]);
let count = 0;

export function notify(text: string): void {
  const notice = { number: ++count, text };
  notices.value = [...notices.value, notice].slice(-3);
  setTimeout(() => {
    notices.value = notices.value.filter(({ number }) => number !== notice.number);
  }, SHOWN_MS);
}

/** Whoever listens to the page is told no more often: in a busy shop it would talk all the time. */
const HEARD_MS = 3_000;
let heardAt = Number.NEGATIVE_INFINITY;

/** What has changed of what is shown, for those who don't see it light up. */
export const heard = ofCaller("");

export function announce(text: string): void {
  if (performance.now() - heardAt < HEARD_MS) return;
  heardAt = performance.now();
  heard.value = text;
}
