/** The number of random histories (HISTORY_RUNS), and their first seed (HISTORY_SEED). */
export const historyRuns = Number(process.env.HISTORY_RUNS ?? 200);
export const historySeed = Number(process.env.HISTORY_SEED ?? 20_240_229);

/** The requests of each client while processes are restarted (ROLLING_REQUESTS), and which clients run (ROLLING_DOORS). */
export const rollingRequests = Number(process.env.ROLLING_REQUESTS ?? 500);
export const rollingDoors = process.env.ROLLING_DOORS?.split(",");

/** How long what somebody on call does is tried while services are killed (ON_CALL_MINUTES): once and little, unless said otherwise. */
export const onCallMinutes = Number(process.env.ON_CALL_MINUTES ?? 0);
