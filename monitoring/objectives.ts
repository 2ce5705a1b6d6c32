/** What the petstore is held to, and from when on somebody is woken. */

/** The share of answers, over the window, that may miss an objective is its error budget. */
export const objectives = {
  window: "30d",
  /** Of all answers of the gateway, this share is not 5xx. */
  answered: 0.999,
  /** Of those that are no streams, this share takes no longer than `seconds`, which is a bound of a bucket. */
  fast: { share: 0.99, seconds: 0.25 },
} as const;

/** When alerts fire. A test that provokes them waits for less. */
export const thresholds = {
  /**
   * A budget is used up `factor` times too fast, in the long window and, so that it ends soon after, in the short one. With 14.4
   * and 6, an hour takes 2 % of the budget of 30 days, and six hours 5 %.
   */
  burns: [
    { factor: 14.4, long: "1h", short: "5m" },
    { factor: 6, long: "6h", short: "30m" },
  ],
  /** How long a process may not answer Prometheus. */
  down: "1m",
  /** How old what is unfinished may become, in seconds: workers finish what a crash left within some ten. */
  pendingSeconds: 120,
  /** How long changes may wait for the service that has to be told, in seconds. */
  outboxSeconds: 60,
  /** How long these must last. */
  lasting: "2m",
};
export type Thresholds = Readonly<typeof thresholds>;
