/** How many random histories there are (HISTORY_RUNS), and from which seed (HISTORY_SEED). */
export const historyRuns = Number(process.env.HISTORY_RUNS ?? 200);
export const historySeed = Number(process.env.HISTORY_SEED ?? 20_240_229);

/** How many requests each way in gets while processes are restarted (ROLLING_REQUESTS), and which ways (ROLLING_DOORS). */
export const rollingRequests = Number(process.env.ROLLING_REQUESTS ?? 500);
export const rollingDoors = process.env.ROLLING_DOORS?.split(",");
