/** Short messages that vanish by themselves. A screen reader reads them when it is idle. */
import { ofCaller } from "./session.ts";

const SHOWN_MS = 6_000;

export const notices = ofCaller<readonly { readonly number: number; readonly text: string }[]>([]);
let count = 0;

export function notify(text: string): void {
  const notice = { number: ++count, text };
  notices.value = [...notices.value, notice].slice(-3);
  setTimeout(() => {
    notices.value = notices.value.filter(({ number }) => number !== notice.number);
  }, SHOWN_MS);
}

/** The shortest time between two announcements: in a busy shop a screen reader would otherwise talk all the time. */
const HEARD_MS = 3_000;
let heardAt = Number.NEGATIVE_INFINITY;

/** The last change of what is shown, for screen readers: their users don't see its row light up. */
export const heard = ofCaller("");

export function announce(text: string): void {
  if (performance.now() - heardAt < HEARD_MS) return;
  heardAt = performance.now();
  heard.value = text;
}
