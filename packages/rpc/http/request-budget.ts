/** Bounds the memory for the requests of strangers, all of them together: for each until it is answered and no work is done for it. */
import type { IncomingMessage } from "node:http";

/** The message to a client whose request is refused for lack of memory. */
export const TOO_MANY_UNDER_WAY = "There are too many requests under way. Nothing was done. Try again in a second.";

/** What a request takes, with its header fields and the work for it. Measured with Node 26, on the heap and outside it. */
export const REQUEST_BYTES = 64 * 1024;
/** Requests that may be open. Each takes some 12 KiB, even if it is refused, and its client may not read that. */
export const OPEN_REQUESTS = 10_000;
/** Bytes of a body exist twice, as received and as used. */
const COPIES = 2;

/** What one request takes of the budget. */
class Hold {
  readonly budget: Budget;
  /** Beyond the budget it counts nothing. */
  readonly isRefused: boolean;
  bytes = 0;
  /** The request is not answered yet, or work is still done for it. */
  isOpen = true;
  works = 0;

  constructor(budget: Budget, bytes: number) {
    this.budget = budget;
    budget.open++;
    this.isRefused = budget.bytes + bytes > budget.maxBytes;
    if (!this.isRefused) this.add(bytes);
  }
  add(bytes: number): void {
    this.bytes += bytes;
    this.budget.bytes += bytes;
  }
  /** To be called once, when the request is answered. */
  release(): void {
    this.budget.open--;
    this.isOpen = false;
    this.giveBackIfDone();
  }
  giveBackIfDone(): void {
    if (!this.isOpen && this.works === 0) this.add(-this.bytes);
  }
}

// Stored on the request itself: a WeakMap cost a tenth of the time of a refusal, most of it in garbage collection.
const HOLD: unique symbol = Symbol("hold");
type Held = object & { [HOLD]?: Hold };

/** Counts the requests that are open, too, also those that were refused and whose client does not read that. */
export const createRequestBudget = (maxBytes: number) => ({ maxBytes, bytes: 0, open: 0 });
type Budget = ReturnType<typeof createRequestBudget>;

/**
 * Counts a request with the body that it announces, until `release` is called and the work for it is done. Beyond the budget
 * it is refused (`isRefused`), and counts nothing. A body that announces no length counts as it is read (`growRequest`).
 */
export function holdRequest(budget: Budget, request: IncomingMessage, bodyBytes: number): Hold {
  const announced = Number(request.headers["content-length"] ?? 0);
  const hold = new Hold(budget, REQUEST_BYTES + COPIES * Math.min(announced, bodyBytes));
  (request as Held)[HOLD] = hold;
  return hold;
}

/** Whether a request is refused, for there is no memory for its work. */
export const isRefused = (request: object): boolean => (request as Held)[HOLD]?.isRefused === true;

/** Counts bytes that are read for a request beyond those that it announced. Returns false beyond the budget. */
export function growRequest(request: object, bytes: number): boolean {
  const hold = (request as Held)[HOLD];
  if (!hold?.isOpen) return true;
  if (hold.budget.bytes + COPIES * bytes > hold.budget.maxBytes) return false;
  hold.add(COPIES * bytes);
  return true;
}

/** Stops counting a request here, for it is counted elsewhere. */
export function releaseRequest(request: object): void {
  const hold = (request as Held)[HOLD];
  hold?.add(-hold.bytes);
}

/** Counts a request for as long as work is done for it, even after its connection was closed. */
export function whileWorking(request: object, work: () => void | Promise<void>): void | Promise<void> {
  const hold = (request as Held)[HOLD];
  if (!hold) return work();
  hold.works++;
  const end = () => {
    hold.works--;
    hold.giveBackIfDone();
  };
  const done = work();
  if (done instanceof Promise) return done.finally(end);
  end();
}
