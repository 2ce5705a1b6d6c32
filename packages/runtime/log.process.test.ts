import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Secret } from "./environment.ts";
import { createLogger, type LoggerOptions } from "./log.ts";

/** A logger, and the lines it wrote. */
function logged(options: Partial<LoggerOptions> = {}) {
  let written = "";
  const destination = { write: (text: string) => (written += text) };
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
    log.error({ err: Object.assign(new Error("down", { cause }), { descriptor: { huge: true } }) }, "failed");
    const [line = ""] = lines();
    expect(JSON.parse(line).err).toEqual({
      type: "Error",
      message: "down",
      stack: expect.stringContaining("log.process.test.ts"),
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

test.each(["json", "pretty"] as const)("what passes by itself is one line without a stack (%s)", (format) => {
  const { log, lines } = logged({ format });
  const cause = new ConnectError("connect ECONNREFUSED", Code.Unavailable);
  log.warn({ err: new Error("PetService did not answer", { cause }) }, "UNAVAILABLE");
  log.child({}).info({ err: cause }, "UNAVAILABLE");
  expect(lines()).toHaveLength(2);
  expect(lines()[0]).toMatch(/PetService did not answer.*connect ECONNREFUSED/);
  expect(lines().join()).not.toContain("log.process.test.ts");
  log.error({ err: new Error("boom") }, "INTERNAL");
  expect(lines().join()).toContain("log.process.test.ts");
});

test("for people it is one line too", () => {
  const { log, lines } = logged({ format: "pretty" });
  log.info({ petId: 7 }, "hello");
  const [line, ...more] = lines();
  expect(line).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: pet: hello \{"petId":7\}$/);
  expect(more).toEqual([]);
});

test.each(["json", "pretty"] as const)("secrets do not get into the log (%s)", (format) => {
  const { log, lines } = logged({ format, secrets: ["x-internal-secret"] });
  const headers = {
    authorization: "hunter2",
    cookie: "hunter2",
    "x-internal-secret": "hunter2",
    "x-api-key": "hunter2",
  };
  log.info(headers, "at the top");
  log.info({ headers }, "one level down");
  log.info({ request: { headers } }, "two levels down");
  log.info({ password: "hunter2", config: { internalSecret: new Secret("hunter2") } }, "configuration");
  log.info({ call: { request: [{ headers }] } }, "deeper");
  log.child({ cookie: "hunter2" }).info("of a child");
  log.warn(Object.assign(new Error("boom"), headers), "an error");
  log.info({ made: { toJSON: () => ({ headers }) } }, "for JSON");
  const text = lines().join("\n");
  expect(text).not.toContain("hunter2");
  expect(text.match(/\[secret\]/g)).toHaveLength(23);
});

describe.each(["json", "pretty"] as const)("control characters (%s)", (format) => {
  const controls = [...Array(0x20).keys(), ...Array.from({ length: 0x21 }, (_, i) => 0x7f + i)];
  const others = [0x2028, 0x2029, 0x200e, 0x202e, 0x2066];
  const nasty = String.fromCharCode(...controls, ...others);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const raw = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u202e\u2066]/;

  test("reach no log as they are, wherever they stand", () => {
    const { log, lines } = logged({ format });
    log.info({ path: `/pets/${nasty}` }, nasty);
    log.warn({ err: new ConnectError(nasty, Code.Unavailable, undefined, [], nasty) }, `${nasty}!`);
    log.info({ [nasty]: { [nasty]: [nasty] } }, "as names");
    expect(lines()).toHaveLength(3);
    log.error({ err: Object.assign(new Error(nasty, { cause: new Error(nasty) }), { code: nasty }) }, "an error");
    const text = lines().join("\n");
    expect(text).not.toMatch(raw);
    for (const escaped of ["\\u001b", "\\u007f", "\\u0085", "\\u009b", "\\u2028", "\\u202e"])
      expect(text).toContain(escaped);
  });

  test("are told apart from the text of their escapes, and other letters stay", () => {
    const { log, lines } = logged({ format });
    log.info("Grüße 🐈 \u00a0 \\u0085");
    expect(lines()[0]).toContain(format === "json" ? "Grüße 🐈 \u00a0 \\\\u0085" : "Grüße 🐈 \u00a0 \\u0085");
  });
});

describe.each(["json", "pretty"] as const)("standard output (%s)", (format) => {
  const talk = (lines: number, end: string): ChildProcess =>
    spawn(process.execPath, [join(import.meta.dirname, "fixtures/talkative.ts"), format, String(lines), end], {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
  const said = (output: string) => output.match(/"line":\d+/g)?.length ?? 0;

  test("that nobody reads stalls nobody, and what was dropped is counted", { timeout: 60_000 }, async () => {
    const lines = 20_000; // of more than 500 bytes
    const child = talk(lines, "live");
    expect(await once(child, "message")).toContain("said all");
    child.send("are you there?");
    expect(await once(child, "message")).toContain("are you there?");
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => (output += text));
    const dropped = () => Number(/(\d+) log lines were dropped/.exec(output)?.[1] ?? 0);
    while (dropped() === 0) await once(child.stdout as NodeJS.ReadableStream, "data");
    expect(dropped()).toBeGreaterThan(lines / 2);
    expect(said(output) + dropped()).toBe(lines);
    child.disconnect();
    await once(child, "exit");
  });

  test("has the last words of a process that ends itself", { timeout: 60_000 }, async () => {
    // More than a pipe holds, and little enough to be read within the second that an ending process waits for its reader.
    const lines = 300;
    const child = talk(lines, "crash");
    expect(await once(child, "message")).toContain("said all");
    const [output] = await Promise.all([readAll(child.stdout as NodeJS.ReadableStream), once(child, "exit")]);
    expect(said(output)).toBe(lines);
    const [, ending = ""] = output.split(`"line":${lines}`);
    expect(ending).toContain("the last words");
    expect(ending).toContain("boom");
  });

  test("has a warning, and what was said before it, whatever ends the process", { timeout: 60_000 }, async () => {
    const child = talk(20, "kill");
    const output = await readAll(child.stdout as NodeJS.ReadableStream);
    expect(said(output)).toBe(20);
    expect(output).toContain("the last words");
  });

  test("does not keep a process from ending", { timeout: 60_000 }, async () => {
    expect(await once(talk(1000, "crash"), "exit")).toEqual([1, null]);
  });
});
