/** Bounds the memory that strangers' requests take, all of them together, until nothing is kept of them. */
import type { IncomingMessage } from "node:http";

/** The message to a client whose request is refused for lack of memory. */
export const TOO_MANY_UNDER_WAY = "There are too many requests under way. Nothing was done. Try again in a second.";

/** What a request takes, with its header fields and the work for it. Measured with Node 26, on the heap and outside it. */
export const REQUEST_BYTES = 64 * 1024;
/** Requests that may be open. Each takes some 12 KiB, even if it is refused, and its client may not read that. */
export const OPEN_REQUESTS = 10_000;
/** Bytes of a body exist twice, as received and as used. */
const COPIES = 2;

interface Hold {
  readonly budget: Budget;
  readonly isRefused: boolean;
  bytes: number;
  /** The request is not answered yet, or work is still done for it. */
  isOpen: boolean;
  works: number;
}

interface Budget {
  readonly maxBytes: number;
  bytes: number;
  /** Requests that are open, also those that were refused and whose client does not read that. */
  open: number;
}

// Stored on the request itself: a WeakMap cost a tenth of the time of a refusal, most of it in garbage collection.
const HOLD: unique symbol = Symbol("hold");
type Held = object & { [HOLD]?: Hold };

export const createRequestBudget = (maxBytes: number): Budget => ({ maxBytes, bytes: 0, open: 0 });

/**
 * Counts a request with the body that it announces, until `release` is called and the work for it is done. Beyond the budget
 * it is refused (`isRefused`), and counts nothing. A body that announces no length counts as it is read (`growRequest`).
 */
export function holdRequest(budget: Budget, request: IncomingMessage, bodyBytes: number): { release(): void } {
  budget.open++;
  const announced = Number(request.headers["content-length"] ?? 0);
  const bytes = REQUEST_BYTES + COPIES * Math.min(announced, bodyBytes);
  const isRefused = budget.bytes + bytes > budget.maxBytes;
  const hold: Hold = { budget, isRefused, bytes: 0, isOpen: true, works: 0 };
  if (!isRefused) add(hold, bytes);
  (request as Held)[HOLD] = hold;
  return {
    release() {
      budget.open--;
      hold.isOpen = false;
      giveBackIfDone(hold);
    },
  };
}

function add(hold: Hold, bytes: number): void {
  hold.bytes += bytes;
  hold.budget.bytes += bytes;
}

function giveBackIfDone(hold: Hold): void {
  if (!hold.isOpen && hold.works === 0) add(hold, -hold.bytes);
}

/** Whether a request is refused, for there is no memory for its work. */
export const isRefused = (request: object): boolean => (request as Held)[HOLD]?.isRefused === true;

/** Counts bytes that are read for a request beyond those that it announced. Returns false beyond the budget. */
export function growRequest(request: object, bytes: number): boolean {
  const hold = (request as Held)[HOLD];
  if (!hold?.isOpen) return true;
  if (hold.budget.bytes + COPIES * bytes > hold.budget.maxBytes) return false;
  add(hold, COPIES * bytes);
  return true;
}

/** Stops counting a request here, for it is counted elsewhere. */
export function releaseRequest(request: object): void {
  const hold = (request as Held)[HOLD];
  if (hold) add(hold, -hold.bytes);
}

/** Counts a request for as long as work is done for it, even after its connection was closed. */
export function whileWorking(request: object, work: () => void | Promise<void>): void | Promise<void> {
  const hold = (request as Held)[HOLD];
  if (!hold) return work();
  hold.works++;
  const end = () => {
    hold.works--;
    giveBackIfDone(hold);
  };
  const done = work();
  if (done instanceof Promise) return done.finally(end);
  end();
}
