/**
 * Reading variables of the environment: kinds of value, and `readEnvironment`, which names every wrong one at once. Pure.
 * A variable that is empty or blank counts as not set.
 */
import { isIP } from "node:net";
import * as z from "zod";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment does not make a configuration. Its message has one line for each problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** A value that no log, error or JSON can show by accident. */
export class Secret {
  readonly #value: string;
  constructor(value: string) {
    this.#value = value;
  }
  reveal(): string {
    return this.#value;
  }
  toString(): string {
    return "[secret]";
  }
  toJSON(): string {
    return "[secret]";
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[secret]";
  }
}

/** A kind of value. Its description says what is allowed, in words that complete "must be ...". */
export type Kind<T> = z.ZodType<T, string>;

/** A whole number in plain decimal digits; both ends are allowed. */
export const integer = (min: number, max: number): Kind<number> =>
  z
    .string()
    .regex(/^-?\d{1,16}$/)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .describe(`a whole number from ${min} to ${max}`);

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time with its unit, such as `250ms`, `10s` or `24h`, in milliseconds; both ends are allowed. */
export const duration = (min: string, max: string): Kind<number> =>
  z
    .string()
    .transform(milliseconds)
    .pipe(z.number().min(milliseconds(min)).max(milliseconds(max)))
    .describe(`a time from ${min} to ${max}, written like 250ms, 10s, 5m, 24h or 7d`);

function milliseconds(text: string): number {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  return unit === undefined ? Number.NaN : Number(digits) * unitMs[unit as keyof typeof unitMs];
}

/** A moment in RFC 3339's notation, or a day (its first moment in UTC), in milliseconds since 1970. */
export const instant: Kind<number> = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()])
  .transform((text) => Date.parse(text))
  .describe("a moment such as 2027-12-31T23:59:59Z, or a day such as 2027-12-31");

export const boolean: Kind<boolean> = z
  .enum(["true", "false"])
  .transform((text) => text === "true")
  .describe("true or false");

export const oneOf = <const T extends string>(...values: readonly T[]): Kind<T> =>
  z.enum(values).describe(values.join(" or ")) as unknown as Kind<T>;

export const text: Kind<string> = z.string().describe("a text");

/** Values separated by commas. */
export const list = <T>(kind: Kind<T>): Kind<readonly T[]> =>
  z
    .string()
    .transform((value) => value.split(",").map((item) => item.trim()))
    .pipe(z.array(kind))
    .describe(`a comma-separated list, each of them ${kind.description}`);

/** The address of a server: scheme, host and perhaps a port, no more. Given back without a slash at the end. */
export const url: Kind<string> = z
  .url({ protocol: /^https?$/ })
  .transform((value) => new URL(value))
  .refine(({ href, origin }) => href === `${origin}/`)
  .transform(({ origin }) => origin)
  .describe("an http or https address such as http://127.0.0.1:8081");

/** Where the replicas of one service are: its addresses, each once. */
export const urls: Kind<readonly string[]> = list(url)
  .refine((all) => new Set(all).size === all.length)
  .describe(`${url.description}, or several different ones separated by commas`);

/** A name or address to listen on. */
export const host: Kind<string> = z
  .union([z.string().refine(isIP), z.hostname().regex(/[^\d.]/)])
  .describe("an IP address or a host name, such as 127.0.0.1, ::1 or localhost");

export const secret = (minLength: number): Kind<Secret> =>
  hidden(
    z
      .string()
      .min(minLength)
      .regex(/^[!-~]+$/),
    `at least ${minLength} visible ASCII characters, such as \`openssl rand -hex 32\` prints`,
  );

/** A MongoDB connection string. Secret, for it may hold a password. */
export const mongodbUri: Kind<Secret> = hidden(
  z.string().regex(/^mongodb(\+srv)?:\/\/\S+$/),
  "a connection string that starts with mongodb:// or mongodb+srv://",
);

/** A problem with it is told without the text. */
function hidden(kind: Kind<string>, description: string): Kind<Secret> {
  return kind.transform((value) => new Secret(value)).meta({ description, hidden: true });
}

/** A kind, and the value that stands when the variable is not set. */
export interface Setting<T> {
  readonly kind: Kind<T>;
  readonly absent: T | undefined;
  readonly required?: boolean;
}
export const withDefault = <T>(kind: Kind<T>, absent: T): Setting<T> => ({ kind, absent });
export const optional = <T>(kind: Kind<T>): Setting<T | undefined> => ({ kind, absent: undefined });
export const required = <T>(kind: Kind<T>): Setting<T> => ({ kind, absent: undefined, required: true });

export type Values<S> = { readonly [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never };

/** Reads each variable by its setting. Throws one `ConfigError` that names all wrong ones. */
export function readEnvironment<S extends Readonly<Record<string, Setting<unknown>>>>(
  environment: Environment,
  settings: S,
): Values<S> {
  const problems: string[] = [];
  const values = Object.entries(settings).map(([name, { kind, absent, required }]) => {
    const given = environment[name]?.trim();
    if (given === undefined || given === "") {
      if (required) problems.push(`${name} is not set: it must be ${kind.description}.`);
      return [name, absent];
    }
    const { success, data } = kind.safeParse(given);
    const shown = kind.meta()?.hidden ? name : `${name}=${given}`;
    if (!success) problems.push(`${shown} is wrong: it must be ${kind.description}.`);
    return [name, data];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(values) as Values<S>;
}
