/**
 * Reading variables of the environment: kinds of value, and `readEnvironment`, which names every wrong one at once. Pure.
 * A variable that is empty or blank counts as not set.
 */
import { isIP } from "node:net";

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

/** A kind of value: what is allowed, in words that complete "must be ...", and how its text is read. */
export interface Kind<T> {
  readonly allowed: string;
  /** Undefined when the text is not allowed. */
  parse(text: string): T | undefined;
  /** A problem with it is told without the text. */
  readonly hidden?: boolean;
}

/** A whole number in plain decimal digits; both ends are allowed. */
export const integer = (min: number, max: number): Kind<number> => ({
  allowed: `a whole number from ${min} to ${max}`,
  parse: (text) => {
    const value = Number(text);
    return /^-?\d{1,16}$/.test(text) && value >= min && value <= max ? value : undefined;
  },
});

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time with its unit, such as `250ms`, `10s` or `24h`, in milliseconds; both ends are allowed. */
export const duration = (min: string, max: string): Kind<number> => ({
  allowed: `a time from ${min} to ${max}, written like 250ms, 10s, 5m, 24h or 7d`,
  parse: (text) => {
    const value = milliseconds(text);
    return value >= milliseconds(min) && value <= milliseconds(max) ? value : undefined;
  },
});

function milliseconds(text: string): number {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  return unit === undefined ? Number.NaN : Number(digits) * unitMs[unit as keyof typeof unitMs];
}

const moment = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$/;

/** A moment in RFC 3339's notation, or a day (its first moment in UTC), in milliseconds since 1970. */
export const instant: Kind<number> = {
  allowed: "a moment such as 2027-12-31T23:59:59Z, or a day such as 2027-12-31",
  parse: (text) => {
    const [, day] = moment.exec(text) ?? [];
    const value = Date.parse(text);
    if (day === undefined || Number.isNaN(value)) return undefined;
    // Date.parse takes the 30th of February for the 2nd of March.
    return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day) ? value : undefined;
  },
};

export const boolean: Kind<boolean> = {
  allowed: "true or false",
  parse: (text) => (text === "true" ? true : text === "false" ? false : undefined),
};

export const oneOf = <const T extends string>(...values: readonly T[]): Kind<T> => ({
  allowed: values.join(" or "),
  parse: (text) => values.find((value) => value === text),
});

export const text: Kind<string> = { allowed: "a text", parse: (value) => value };

/** Values separated by commas. */
export const list = <T>(kind: Kind<T>): Kind<readonly T[]> => ({
  allowed: `a comma-separated list, each of them ${kind.allowed}`,
  parse: (value) => {
    const items = value.split(",").map((item) => kind.parse(item.trim()));
    return items.includes(undefined) ? undefined : (items as T[]);
  },
});

/** The address of a server: scheme, host and perhaps a port, no more. Given back without a slash at the end. */
export const url: Kind<string> = {
  allowed: "an http or https address such as http://127.0.0.1:8081",
  parse: (value) => {
    const parsed = URL.parse(value);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) return undefined;
    return parsed.href === `${parsed.origin}/` ? parsed.origin : undefined;
  },
};

/** Where the replicas of one service are: its addresses, each once. */
export const urls: Kind<readonly string[]> = {
  allowed: `${url.allowed}, or several different ones separated by commas`,
  parse: (value) => {
    const all = list(url).parse(value);
    return all && new Set(all).size === all.length ? all : undefined;
  },
};

/** A name or address to listen on. */
export const host: Kind<string> = {
  allowed: "an IP address or a host name, such as 127.0.0.1, ::1 or localhost",
  parse: (value) => {
    const name =
      value.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(value);
    return isIP(value) > 0 || (name && !/^[\d.]+$/.test(value)) ? value : undefined;
  },
};

export const secret = (minLength: number): Kind<Secret> => ({
  allowed: `at least ${minLength} visible ASCII characters, such as \`openssl rand -hex 32\` prints`,
  parse: (value) => (/^[!-~]+$/.test(value) && value.length >= minLength ? new Secret(value) : undefined),
  hidden: true,
});

/** A MongoDB connection string. Secret, for it may hold a password. */
export const mongodbUri: Kind<Secret> = {
  allowed: "a connection string that starts with mongodb:// or mongodb+srv://",
  parse: (value) => (/^mongodb(\+srv)?:\/\/\S+$/.test(value) ? new Secret(value) : undefined),
  hidden: true,
};

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
      if (required) problems.push(`${name} is not set: it must be ${kind.allowed}.`);
      return [name, absent];
    }
    const value = kind.parse(given);
    if (value === undefined)
      problems.push(`${kind.hidden ? name : `${name}=${given}`} is wrong: it must be ${kind.allowed}.`);
    return [name, value];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(values) as Values<S>;
}
