/** Lets no timer fire. Unlike mocked timers these are not kept, so the memory of a long simulation does not grow by them. */
export function holdTimers(): void {
  const timer = { ref: () => timer, unref: () => timer, hasRef: () => false, refresh: () => timer };
  globalThis.setTimeout = (() => timer) as unknown as typeof setTimeout;
}
