/** `/log-level`: the process logs more, or less, for a while. By itself it returns to what LOG_LEVEL says. */
import { duration, oneOf } from "@petstore/runtime/environment";
import { type Logger, logLevels } from "@petstore/runtime/log";
import type { AdminAnswer, AdminRoutes } from "../admin.ts";
import { membersOf, readAs } from "./body.ts";

const level = oneOf(...logLevels);
const time = duration("1s", "24h");

/** `log` is what all other loggers of the process are children of: they follow its level. */
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
