import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { Secret } from "./config.ts";
import { createLogger, type LoggerOptions } from "./log.ts";

/** A logger, and the lines it wrote. */
function logged(options: Partial<LoggerOptions> = {}) {
  let written = "";
  const destination = new Writable({
    write(chunk, _encoding, done) {
      written += chunk;
      done();
    },
  });
  const log = createLogger({ service: "pet", level: "info", format: "json", destination, ...options });
  const lines = () => written.split("\n").slice(0, -1);
  return { log, lines };
}

describe("JSON", () => {
  test("is one record on each line, with service, process, level and time", () => {
    const { log, lines } = logged();
    log.info({ petId: 7 }, "two\nlines");
    log.error({ err: new Error("boom") }, "failed");
    const records = lines().map((line) => JSON.parse(line));
    expect(records).toMatchObject([
      { service: "pet", pid: process.pid, level: "info", petId: 7, msg: "two\nlines" },
      { service: "pet", level: "error", msg: "failed", err: { type: "Error", message: "boom" } },
    ]);
    expect(records[0].time).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  });

  test("tells what an error says and its causes, and not what else hangs on it", () => {
    const { log, lines } = logged();
    const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED", request: { body: "x".repeat(10_000) } });
    log.warn({ err: Object.assign(new Error("down", { cause }), { descriptor: { huge: true } }) }, "failed");
    const [line = ""] = lines();
    expect(JSON.parse(line).err).toEqual({
      type: "Error",
      message: "down",
      stack: expect.stringContaining("log.test.ts"),
      cause: { type: "Error", message: "refused", code: "ECONNREFUSED", stack: expect.any(String) },
    });
  });

  test("leaves out what is below the level", () => {
    const { log, lines } = logged({ level: "warn" });
    log.info("no");
    log.warn("yes");
    expect(lines()).toHaveLength(1);
  });
});

test("for people it is one line too", () => {
  const { log, lines } = logged({ format: "pretty" });
  log.info({ petId: 7 }, "hello");
  const [line, ...more] = lines();
  expect(line).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: pet: hello \{"petId":7\}$/);
  expect(more).toEqual([]);
});

test.each(["json", "pretty"] as const)("secrets do not get into the log (%s)", (format) => {
  const { log, lines } = logged({ format });
  const headers = {
    authorization: "hunter2",
    cookie: "hunter2",
    "x-petstore-secret": "hunter2",
    "x-api-key": "hunter2",
  };
  log.info(headers, "at the top");
  log.info({ headers }, "one level down");
  log.info({ request: { headers } }, "two levels down");
  log.info({ password: "hunter2", config: { internalSecret: new Secret("hunter2") } }, "configuration");
  const text = lines().join("\n");
  expect(text).not.toContain("hunter2");
  expect(text.match(/\[secret\]/g)).toHaveLength(14);
});
