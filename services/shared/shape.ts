/**
 * What a stored document must look like to be believed. What no version of the petstore stores, or only a newer one, is
 * found when it is read, and not by whatever fails on it later. Fields that a shape does not name may hold anything.
 */

/** Says where a value does not fit: a dotted path, "" for the value itself, undefined when all of it fits. */
export type Judge = (value: unknown) => string | undefined;

export interface Shape<T> extends Judge {
  /** Never set; it carries the type, and forgets no value of it. */
  readonly of?: (value: T) => T;
}

/** A shape for each field. A field that the type leaves open is `optional`. */
export type Fields<T> = { readonly [K in keyof T]-?: Shape<T[K]> };

const that =
  <T>(isRight: (value: unknown) => boolean): Shape<T> =>
  (value) =>
    isRight(value) ? undefined : "";

export const text = that<string>((value) => typeof value === "string");
export const flag = that<boolean>((value) => typeof value === "boolean");
/** An integer that is exact. */
export const whole = that<number>(Number.isSafeInteger);

export const oneOf = <const V extends string | number | boolean>(...values: readonly V[]): Shape<V> =>
  that((value) => values.includes(value as V));

export const optional =
  <T>(shape: Shape<T>): Shape<T | undefined> =>
  (value) =>
    value === undefined ? undefined : shape(value);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const anyObject = that<object>(isObject);

const within = (name: string, wrong: string) => (wrong === "" ? name : `${name}.${wrong}`);

export function object<T extends object>(fields: Fields<T>): Shape<T> {
  const shapes = Object.entries<Judge>(fields);
  return (value) => {
    if (!isObject(value)) return "";
    for (const [name, shape] of shapes) {
      const wrong = shape(value[name]);
      if (wrong !== undefined) return within(name, wrong);
    }
    return undefined;
  };
}

/** Any names, and values of one shape. */
export const mapOf =
  <T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> =>
  (value) => {
    if (!isObject(value)) return "";
    for (const [name, one] of Object.entries(value)) {
      const wrong = shape(one);
      if (wrong !== undefined) return within(name, wrong);
    }
    return undefined;
  };

/** All fields of an object may be missing. */
export const partial = <T extends object>(fields: Fields<T>): Shape<Partial<T>> =>
  object(Object.fromEntries(Object.entries<Judge>(fields).map(([name, shape]) => [name, optional(shape)])) as never);
