/**
 * Reading environment variables: formats of values, and `readEnvironment`, which reports all invalid variables at once.
 * Pure, except that secrets may be read from files. A variable that is empty or blank counts as not set.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment is no valid configuration. The message has one line for each problem. */
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

/** The format of a value: how the text of a variable is read, and what is allowed. */
export interface Format<T> {
  /** What is allowed, in words that complete "must be ...". */
  readonly description: string;
  /** Returns undefined for an invalid text. */
  readonly read: (text: string) => T | undefined;
  /** Errors do not quote the value, and it may be in a file that the variable NAME_FILE names. */
  readonly isHidden?: boolean;
}

export const format = <T>(description: string, read: Format<T>["read"]): Format<T> => ({ description, read });

/** A whole number in plain decimal digits; both ends are allowed. */
export const integer = (min: number, max: number): Format<number> =>
  format(`a whole number from ${min} to ${max}`, (value) =>
    /^-?\d{1,16}$/.test(value) ? within(min, Number(value), max) : undefined,
  );

const within = (min: number, value: number, max: number) => (value >= min && value <= max ? value : undefined);

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time with its unit, such as `250ms`, `10s` or `24h`, in milliseconds; both ends are allowed. */
export const duration = (min: string, max: string): Format<number> =>
  format(`a time from ${min} to ${max}, written like 250ms, 10s, 5m, 24h or 7d`, (value) =>
    within(milliseconds(min), milliseconds(value), milliseconds(max)),
  );

function milliseconds(text: string): number {
  const [, digits, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? [];
  return unit === undefined ? Number.NaN : Number(digits) * unitMs[unit as keyof typeof unitMs];
}

/** A moment in RFC 3339's notation, or a day (its first moment in UTC), in milliseconds since 1970. */
export const instant: Format<number> = format(
  "a moment such as 2027-12-31T23:59:59Z, or a day such as 2027-12-31",
  (value) => {
    const time = /T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
    const day = value.replace(time, "");
    if (!/^\d{4}-\d\d-\d\d$/.test(day)) return undefined;
    const first = new Date(day);
    // `Date` takes a day that the month does not have for one of the next month.
    const isThere = !Number.isNaN(first.getTime()) && first.toISOString().startsWith(day);
    return isThere ? Date.parse(value) : undefined;
  },
);

export const oneOf = <const T extends string>(...values: readonly T[]): Format<T> =>
  format(values.join(" or "), (value) => values.find((known) => known === value));

export const text: Format<string> = format("a text", (value) => value);

/** A path as it stands: a shell would replace `~` and variables, and SQLite would read a URL as such. */
export const path: Format<string> = format(
  "a path such as ./data or /srv/petstore, written out: nothing replaces ~ or $HOME here, and it is no URL",
  (value) => (/^([~$]|file:|\w+:\/\/)/i.test(value) ? undefined : value),
);

/** Values separated by commas. */
export const list = <T>({ description, read }: Format<T>): Format<readonly T[]> =>
  format(`a comma-separated list, each of them ${description}`, (value) => {
    const all = value.split(",").map((item) => read(item.trim()));
    return all.every((item) => item !== undefined) ? all : undefined;
  });

/** The address of a server: scheme, host and perhaps a port, no more. Returned without a slash at the end. */
export const url: Format<string> = format("an http or https address such as http://127.0.0.1:8081", (value) => {
  const { protocol, href, origin } = URL.parse(value) ?? {};
  return /^https?:$/.test(`${protocol}`) && href === `${origin}/` ? origin : undefined;
});

/** The addresses of the replicas of one service, each once. */
export const urls: Format<readonly string[]> = format(
  `${url.description}, or several different ones separated by commas`,
  (value) => {
    const all = list(url).read(value);
    return new Set(all).size === all?.length ? all : undefined;
  },
);

/** A name (RFC 1123, 2.1) or address to listen on. */
export const host: Format<string> = format(
  "an IP address or a host name, such as 127.0.0.1, ::1 or localhost",
  (value) => {
    const name = value.replace(/\.$/, "");
    const isName = name.length <= 253 && name.split(".").every((label) => /^(?!-)[A-Za-z\d-]{1,63}(?<!-)$/.test(label));
    return isIP(value) !== 0 || (isName && /[^\d.]/.test(name)) ? value : undefined;
  },
);

export const secret = (minLength: number): Format<Secret> =>
  hidden(
    `at least ${minLength} visible ASCII characters, such as \`openssl rand -hex 32\` prints`,
    (value) => value.length >= minLength && /^[!-~]+$/.test(value),
  );

/** A MongoDB connection string. Secret, because it may hold a password. */
export const mongodbUri: Format<Secret> = hidden(
  "a connection string that starts with mongodb:// or mongodb+srv://",
  (value) => /^mongodb(\+srv)?:\/\/\S+$/.test(value),
);

function hidden(description: string, isOne: (value: string) => boolean): Format<Secret> {
  return { description, isHidden: true, read: (value) => (isOne(value) ? new Secret(value) : undefined) };
}

/** A format, and the value that is used when the variable is not set. */
export interface Setting<T> {
  readonly format: Format<T>;
  readonly absent: T | undefined;
  readonly required?: boolean;
  readonly needs?: Needs | undefined;
}
/** The variables without which a setting has no effect, and what to do where one is not set. */
export type Needs = Readonly<Record<string, string>>;
export const withDefault = <T>(format: Format<T>, absent: T, needs?: Needs): Setting<T> => ({ format, absent, needs });
export const optional = <T>(format: Format<T>, needs?: Needs): Setting<T | undefined> =>
  withDefault<T | undefined>(format, undefined, needs);
export const required = <T>(format: Format<T>): Setting<T> => ({ format, absent: undefined, required: true });

export type Values<S> = { readonly [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never };

/** Reads each variable by its setting. Throws one `ConfigError` that names all invalid ones. */
export function readEnvironment<S extends Readonly<Record<string, Setting<unknown>>>>(
  environment: Environment,
  settings: S,
): Values<S> {
  const problems: string[] = [];
  const values = Object.entries(settings).map(([name, { format, absent, required, needs = {} }]) => {
    const { given, label, problem } = format.isHidden ? secretText(environment, name) : plainText(environment, name);
    if (problem !== undefined) problems.push(problem);
    else if (given === undefined) {
      if (required) problems.push(`${name} is not set: it must be ${format.description}.`);
    } else {
      const value = format.read(given);
      if (value === undefined) problems.push(`${label} is wrong: it must be ${format.description}.`);
      for (const [other, advice] of Object.entries(needs))
        if (plainText(environment, other).given === undefined)
          problems.push(`${other} is not set: ${name} has no effect without it. ${advice}.`);
      return [name, value];
    }
    return [name, absent];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(values) as Values<S>;
}

interface Given {
  readonly given: string | undefined;
  /** The variable, in words that begin a sentence. */
  readonly label: string;
  readonly problem?: string;
}

function plainText(environment: Environment, name: string): Given {
  const given = environment[name]?.trim() || undefined;
  const label = `${name}=${given}`;
  if (given === undefined || !/^(["']).*\1$/s.test(given)) return { given, label };
  const problem = `${name} is in quotes, which are part of it: leave them out. A shell takes them off, Docker's --env-file does not.`;
  return { given, label, problem };
}

/**
 * Reads a secret from the variable NAME, or from the file that NAME_FILE names, as is usual for containers. Errors do not
 * even quote the path: by mistake it could be the secret itself.
 */
function secretText(environment: Environment, name: string): Given {
  const own = plainText(environment, name);
  const { given } = own;
  const file = plainText(environment, `${name}_FILE`);
  if (file.given === undefined) return { ...own, label: name };
  const label = `${name}, read from the file that ${name}_FILE names,`;
  if (given !== undefined) return { given, label, problem: `${name} and ${name}_FILE are both set: set one of them.` };
  if (file.problem !== undefined) return file;
  if (path.read(file.given) === undefined)
    return { given, label, problem: `${name}_FILE is wrong: it must be ${path.description}.` };
  try {
    return { given: readFileSync(file.given, "utf8").trim(), label };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { given, label, problem: `${name}_FILE names a file that can't be read (${code}).` };
  }
}
