/** By themselves, so that to read a level from the environment loads nothing that logs. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];
