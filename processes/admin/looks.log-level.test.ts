import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { type AdminRoutes, Unusable } from "../admin.ts";
import { addLogLevel } from "./looks.ts";

const NOW = Date.UTC(2026, 0, 1);

function start(level = "info") {
  vi.useFakeTimers({ now: NOW });
  const lines: string[] = [];
  const log = pino({ level }, { write: (line: string) => lines.push(JSON.parse(line).msg) });
  const routes: AdminRoutes = new Map();
  addLogLevel(routes, log, Date.now);
  const ask = (name: "GET" | "PUT", body: object | string = "") =>
    routes.get(`${name} /log-level`)?.(typeof body === "string" ? body : JSON.stringify(body), new URLSearchParams());
  return { log, lines, ask };
}

test("the level changes for a while, for every logger of the process, and returns by itself", () => {
  const { log, lines, ask } = start();
  // As Fastify makes one for itself, and one for each request.
  const child = log.child({}, { serializers: {} }).child({ requestId: "a" });
  expect(ask("GET")).toEqual({ status: 200, body: { level: "info", usual: "info" } });
  const until = new Date(NOW + 600_000);
  expect(ask("PUT", { level: "debug", for: "10m" })).toEqual({
    status: 200,
    body: { level: "debug", usual: "info", until },
  });
  for (const each of [log, child, child.child({})]) each.debug("seen");
  vi.advanceTimersByTime(599_999);
  log.debug("still seen");
  vi.advanceTimersByTime(1);
  for (const each of [log, child]) each.debug("unseen");
  expect(lines).toEqual([
    "the log level changes",
    ...["seen", "seen", "seen", "still seen"],
    "the log level is the usual one again",
  ]);
  expect(ask("GET")).toEqual({ status: 200, body: { level: "info", usual: "info" } });
});

test("a second change takes the place of the first, and its time", () => {
  const { log, ask } = start();
  ask("PUT", { level: "trace", for: "10m" });
  vi.advanceTimersByTime(500_000);
  ask("PUT", { level: "debug" });
  vi.advanceTimersByTime(599_999);
  expect(log.level).toBe("debug");
  vi.advanceTimersByTime(1);
  expect(log.level).toBe("info");
});

test("a log that falls silent says so before", () => {
  const { lines, ask } = start();
  ask("PUT", { level: "silent" });
  expect(lines).toEqual(["the log level changes"]);
});

test.each([
  [{}, "level must be trace or debug or"],
  [{ level: "loud" }, "level must be trace or debug or"],
  [{ level: "debug", for: "10" }, "for must be a time from 1s to 24h"],
  [{ level: "debug", for: "0s" }, "for must be a time from 1s to 24h"],
  [{ level: "debug", until: "noon" }, "until is not known here: there is level, for."],
  ["debug", "The body is no JSON"],
])("%j is refused, and nothing changes", (body, why) => {
  const { log, ask } = start();
  expect(() => ask("PUT", body)).toThrow(Unusable);
  expect(() => ask("PUT", body)).toThrow(why);
  expect(log.level).toBe("info");
});
