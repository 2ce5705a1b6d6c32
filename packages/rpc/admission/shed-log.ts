/** Logs refused calls in few lines: a line for each would cost more than the refusal. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Runtime } from "@petstore/runtime/clock";
import { type Priority, priorityOf } from "./priority.ts";

const EVERY_MS = 1_000;

/** Returns a function that counts a refused call. It logs the first at once, and later ones together, once a second at most. */
export function createShedLog({ clock, log }: Pick<Runtime, "clock" | "log">): (method: DescMethod) => void {
  let refused: Partial<Record<Priority, number>> = {};
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (method) => {
    const priority = priorityOf(method);
    refused[priority] = (refused[priority] ?? 0) + 1;
    const now = clock();
    if (now - loggedAt < EVERY_MS) return;
    log.warn({ refused }, "overloaded: calls were refused");
    loggedAt = now;
    refused = {};
  };
}
