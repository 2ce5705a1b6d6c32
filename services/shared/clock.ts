/** Real time and chance, for entry files to hand to what they build. */
import { setTimeout as delay } from "node:timers/promises";
import type { Deps } from "./deps.ts";

// Whole milliseconds: they are stored in documents and sent as timeouts, where fractions are not allowed.
const clock: Deps["clock"] = () => Math.floor(performance.timeOrigin + performance.now());

const sleep: Deps["sleep"] = (ms, signal) => delay(ms, undefined, { signal });

export const realTime: Pick<Deps, "clock" | "random" | "sleep"> = { clock, random: Math.random, sleep };
