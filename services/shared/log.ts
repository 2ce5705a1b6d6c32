import { type DestinationStream, destination as file, type Logger, pino, stdTimeFunctions } from "pino";
import { build as pretty } from "pino-pretty";
import type { LogFormat, LogLevel } from "./config.ts";

export type { Logger } from "pino";

export interface LoggerOptions {
  /** The process that speaks. */
  readonly service: string;
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Standard output unless given. */
  readonly destination?: NodeJS.WritableStream & DestinationStream;
}

/** Members that hold secrets wherever somebody logs headers or a configuration. */
const secretNames = ["authorization", "cookie", '["x-petstore-secret"]', '["x-api-key"]', "password", "internalSecret"];
const redacted = secretNames.flatMap((name) => {
  const step = name.startsWith("[") ? name : `.${name}`;
  return [name, `*${step}`, `*.*${step}`];
});

/**
 * A logger that writes one line for each record: JSON, or for people. Writing is synchronous, so that the last words
 * before an exit are not lost.
 */
export function createLogger({ service, level, format, destination }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: { service, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      redact: { paths: redacted, censor: "[secret]" },
    },
    format === "json"
      ? (destination ?? file({ fd: 1, sync: true }))
      : pretty({
          singleLine: true,
          translateTime: "SYS:HH:MM:ss.l",
          ignore: "pid,service",
          messageFormat: "{service}: {msg}",
          ...(destination ? { destination, colorize: false } : { destination: 1, sync: true }),
        }),
  );
}

/** What an error says, whatever else hangs on it: errors of RPCs carry whole descriptors. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const code = (error as { code?: unknown }).code;
  return { type: name, message, code, stack, ...(cause === undefined ? {} : { cause: describeError(cause) }) };
}
