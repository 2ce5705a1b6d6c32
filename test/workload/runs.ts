/** How many random histories there are (HISTORY_RUNS), and from which seed (HISTORY_SEED). */
export const historyRuns = Number(process.env.HISTORY_RUNS ?? 200);
export const historySeed = Number(process.env.HISTORY_SEED ?? 20_240_229);
