/**
 * `/profile/cpu` and `/profile/heap`: what the process spends its time on, and what it allocates and keeps, sampled for some
 * seconds. The answers are what Chrome's developer tools open as `.cpuprofile` and `.heapprofile`. No port is opened for it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { integer } from "@petstore/runtime/environment";
import { type AdminAnswer, type AdminRoutes, problem } from "../admin.ts";
import { readAs } from "./body.ts";

const seconds = integer(1, 60);

/** The methods of Chrome's DevTools protocol. */
const kinds = {
  cpu: { begin: ["Profiler.enable", "Profiler.start"], end: "Profiler.stop" },
  heap: { begin: ["HeapProfiler.enable", "HeapProfiler.startSampling"], end: "HeapProfiler.stopSampling" },
} as const;

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
