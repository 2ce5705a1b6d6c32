/** Calls that a service still works on after their caller got an error: admission control counts them as under way. */

const running = new WeakMap<object, Promise<boolean>>();

/** Remembers that a service still works on the call that was given up with this error, until `ended` resolves. */
export function markRunning<E extends Error>(error: E, ended: Promise<boolean>): E {
  running.set(error, ended);
  return error;
}

/**
 * Resolves when the call that was given up with this error is over at the service: to true if it was answered, to false if
 * that will never be known. Undefined if the call is over already.
 */
export const stillRunning = (error: unknown): Promise<boolean> | undefined => running.get(error as object);
