/** The log of a process: one line for each record, and standard output, which never waits for its reader. */
import { createRequire } from "node:module";
import { type DestinationStream, destination as file, type Logger, pino } from "pino";
import type { PrettyOptions } from "pino-pretty";
import type { LogLevel } from "./log-levels.ts";

export type { Logger } from "pino";
export { type LogLevel, logLevels } from "./log-levels.ts";

export type LogFormat = "pretty" | "json";

export interface LoggerOptions {
  readonly service: string;
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Names of headers or members that hold secrets, besides the usual ones. */
  readonly secrets?: readonly string[];
  /** Standard output by default. */
  readonly destination?: LogOutput;
}

/** From this level on a record shows the stack of its error. */
const ERROR = pino.levels.values.error as number;
/** From this level on a line is written at once. */
const WARN = pino.levels.values.warn as number;

/** Members of headers or of a configuration that hold secrets. */
const USUAL_SECRETS = ["authorization", "cookie", "x-api-key", "password"];

/**
 * A logger that writes one line for each record: JSON, or for people. Below the level "error" a record shows no stack,
 * because lesser failures pass by themselves. Control characters are escaped.
 */
export function createLogger({ service, level, format, secrets = [], destination }: LoggerOptions): Logger {
  const output = destination ?? standardOutput((lines) => log.warn({ lines }, `${lines} log lines were dropped`));
  const toText = format === "json" ? escapeControls : forPeople(destination ? { colorize: false } : {});
  const censor = censorOf([...USUAL_SECRETS, ...secrets]);
  const lines: DestinationStream & { lastLevel: number } = {
    lastLevel: 0, // kept by pino
    write: (line) => output.write(toText(censor(line)), lines.lastLevel >= WARN),
  };
  const log = pino(
    {
      level,
      base: { service, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error) => describeError(error) },
      hooks: {
        logMethod(args, write, severity) {
          const [first, ...others] = args as unknown[] as [{ err?: unknown }];
          const isBrief = severity < ERROR && first?.err instanceof Error;
          write.apply(this, isBrief ? [{ ...first, err: describeError(first.err, false) }, ...others] : args);
        },
      },
    },
    Object.assign(lines, { [Symbol.for("pino.metadata")]: true }),
  );
  return log;
}

/**
 * Replaces the values of members with these names by "[secret]", at any depth. It works on the finished line, which has
 * everything that is logged; a line without such a name costs only a search.
 */
function censorOf(names: readonly string[]): (line: string) => string {
  const secret = new Set(names);
  const literals = names.map((name) => JSON.stringify(name).replaceAll(/[^\w]/g, "\\$&"));
  const member = new RegExp(`(?:${literals.join("|")}):`);
  const replace = (name: string, value: unknown) => (secret.has(name) ? "[secret]" : value);
  return (line) => (member.test(line) ? `${JSON.stringify(JSON.parse(line, replace))}\n` : line);
}

// All but the line feed that ends a record: C0, DEL, C1, line separators, and bidirectional controls.
const controls = /(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const escapeControls = (text: string): string =>
  isPlain(text)
    ? text
    : text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Whether the text is printable ASCII only. Tested first, because it takes a third of the time. */
const isPlain = (text: string): boolean => !/[^\n -~]/.test(text);

/** Turns a JSON record into a line with time, level, service and message, and then the other members. */
function forPeople(options: PrettyOptions): (line: string) => string {
  const common: PrettyOptions = {
    singleLine: true,
    translateTime: "SYS:HH:MM:ss.l",
    ignore: "pid,service",
    messageFormat: "{service}: {msg}",
    ...options,
  };
  // Loaded for this format only.
  const { prettyFactory } = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
  const brief = prettyFactory({ ...common, errorLikeObjectKeys: [] });
  const withStack = prettyFactory(common);
  return (line) => {
    const record = JSON.parse(line, escapeWithin);
    return (record.err?.stack ? withStack : brief)(record);
  };
}

/** A reviver for JSON.parse that escapes strings and names. A stack keeps its lines, which are shown indented. */
function escapeWithin(name: string, value: unknown): unknown {
  if (typeof value === "string") {
    const text = escapeControls(value);
    return name === "stack" ? text : text.replaceAll("\n", "\\n");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [escapeWithin("", key), inner]));
}

/** The members of an error that are logged. Others are left out: errors of RPCs carry whole descriptors. */
function describeError(error: unknown, withStack = true): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const code = (error as { code?: unknown }).code;
  return {
    type: name,
    message,
    code,
    ...(withStack && { stack }),
    ...(cause !== undefined && { cause: describeError(cause, withStack) }),
  };
}

/** Bytes of lines that wait for a slow reader; what comes beyond them is dropped and counted. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** A pipe takes up to this many bytes whole or not at all (PIPE_BUF), so lines of processes that share one are never mixed. */
const MAX_WRITE_BYTES = 4096;
/** Pause before a reader that takes nothing is tried again. */
const RETRY_MS = 100;
/** Attempts at the end of the process, RETRY_MS apart, before what still waits is dropped. */
const LAST_RETRIES = 10;

/** Writes a whole line, at once if it is urgent. Never waits and never throws. */
type LogOutput = { write(line: string, urgent: boolean): void };

/**
 * Lines of one turn of the event loop are written together at its end, because a write costs as much as producing a line.
 * An urgent line is written at once, after those before it, so that it is not lost whatever ends the process. What the
 * reader does not take waits in memory. `lost` is called with the number of dropped lines as soon as lines can be written
 * again.
 */
function standardOutput(lost: (lines: number) => void): LogOutput {
  let hasFailed = false;
  let willRetry = false;
  let dropped = 0;
  let ofThisTurn = "";
  const output = file({
    fd: process.stdout.fd, // once Node has opened it, a full pipe refuses (EAGAIN) instead of blocking
    sync: true,
    minLength: 1,
    maxLength: MAX_WAITING_BYTES,
    maxWrite: MAX_WRITE_BYTES,
    retryEAGAIN: () => false, // its own retry would block the process
  });
  function flush(): boolean {
    hasFailed = willRetry = false;
    output.flush();
    if (hasFailed) return false;
    if (dropped > 0) lost(dropped);
    dropped = 0;
    return true;
  }
  function retry(): void {
    if (!willRetry) setTimeout(flush, RETRY_MS).unref();
    willRetry = true;
  }
  // A full disk, or a reader that has gone, must not end the process either.
  output.on("error", () => {
    hasFailed = true;
    retry();
  });
  output.on("drop", (lines: string) => {
    dropped += lines.split("\n").length - 1;
    retry();
  });
  function pass(): void {
    const lines = ofThisTurn;
    ofThisTurn = "";
    if (lines !== "") output.write(lines);
  }
  process.once("exit", () => {
    pass();
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < LAST_RETRIES && !flush(); i++) Atomics.wait(pause, 0, 0, RETRY_MS);
  });
  return {
    write(line, urgent) {
      if (ofThisTurn.length + line.length > MAX_WRITE_BYTES) pass();
      if (ofThisTurn === "") setImmediate(pass).unref();
      ofThisTurn += line;
      if (urgent) pass();
    },
  };
}
