/** Calls that go on though their caller was told that they are over: whoever counts what is under way counts them, too. */

const running = new WeakMap<object, Promise<boolean>>();

/** Remembers that a service still works on the call that was given up with this error. */
export function markRunning<E extends Error>(error: E, ended: Promise<boolean>): E {
  running.set(error, ended);
  return error;
}

/**
 * Resolves when the call that was given up with this error is over at the service: to true when it was answered, to false
 * when nobody will ever know. Undefined where the call is over.
 */
export const stillRunning = (error: unknown): Promise<boolean> | undefined => running.get(error as object);
