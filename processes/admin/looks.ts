/** Looking into a process that runs, by its admin port: `/log-level` and `/profile`. */
import { setTimeout as sleep } from "node:timers/promises";
import { duration, integer, oneOf } from "@petstore/runtime/environment";
import { type Logger, logLevels } from "@petstore/runtime/log";
import { type AdminAnswer, type AdminRoutes, problem } from "../admin.ts";
import { membersOf, readAs } from "./body.ts";

const level = oneOf(...logLevels);
const time = duration("1s", "24h");
const seconds = integer(1, 60);

/**
 * `/log-level`: the process logs more, or less, for a while. By itself it returns to what LOG_LEVEL says. `log` is what all
 * other loggers of the process are children of: they follow its level.
 */
export function addLogLevel(routes: AdminRoutes, log: Logger, wallClock: () => number): void {
  const usual = log.level;
  let until: Date | undefined;
  let end: NodeJS.Timeout | undefined;
  const answer = (): AdminAnswer => ({ status: 200, body: { level: log.level, usual, until } });

  routes.set("GET /log-level", answer);
  routes.set("PUT /log-level", (body) => {
    const asked = membersOf(body, { level: "string", for: "string" });
    const next = readAs(level, "level", asked.level);
    const ms = readAs(time, "for", asked.for ?? "10m");
    until = new Date(wallClock() + ms);
    // Before the change, which may hide it.
    log.warn({ level: next, until }, "the log level changes");
    log.level = next;
    clearTimeout(end);
    end = setTimeout(() => {
      log.level = usual;
      until = undefined;
      log.warn({ level: usual }, "the log level is the usual one again");
    }, ms).unref();
    return answer();
  });
}

/** The methods of Chrome's DevTools protocol. */
const kinds = {
  cpu: { begin: ["Profiler.enable", "Profiler.start"], end: "Profiler.stop" },
  heap: { begin: ["HeapProfiler.enable", "HeapProfiler.startSampling"], end: "HeapProfiler.stopSampling" },
} as const;

/**
 * `/profile/cpu` and `/profile/heap`: what the process spends its time on, and what it allocates and keeps, sampled for some
 * seconds. The answers are what Chrome's developer tools open as `.cpuprofile` and `.heapprofile`. No port is opened for it.
 */
export function addProfiles(routes: AdminRoutes): void {
  let isTaken = false;
  for (const kind of ["cpu", "heap"] as const)
    routes.set(`GET /profile/${kind}`, async (_, query): Promise<AdminAnswer> => {
      const ms = 1000 * readAs(seconds, "seconds", query.get("seconds") ?? "10");
      if (isTaken) return problem(409, "A profile is being taken, and two would show each other: ask again behind it.");
      isTaken = true;
      try {
        return { status: 200, body: await take(kind, ms) };
      } finally {
        isTaken = false;
      }
    });
}

async function take(kind: keyof typeof kinds, ms: number): Promise<object> {
  const { Session } = await import("node:inspector"); // few processes ever need it
  const session = new Session();
  const post = (method: string) =>
    new Promise<{ readonly profile: object }>((resolve, reject) =>
      session.post(method, (error, result) => (error ? reject(error) : resolve(result as never))),
    );
  const { begin, end } = kinds[kind];
  session.connect();
  try {
    for (const method of begin) await post(method);
    await sleep(ms, undefined, { ref: false });
    return (await post(end)).profile;
  } finally {
    session.disconnect();
  }
}
