/**
 * Schemas that validate stored documents. A valid value is used as it is; fields that a schema does not name may hold
 * anything. Every document that is read is validated, so this is made to be fast, and to load fast.
 */

/** Returns where a value does not fit: a dotted path, "" for the value itself, undefined if all of it fits. */
export interface DocumentSchema<T> {
  (value: unknown): string | undefined;
  /** Never set; it carries the type. */
  readonly type?: () => T;
}

/** The type of what fits a schema. Read-only, because a document is never changed, only replaced by a successor. */
export type Infer<S> = S extends DocumentSchema<infer T> ? T : never;

export interface Schema<T> extends DocumentSchema<T> {
  /** The same schema for a field that may be missing. */
  readonly optional: DocumentSchema<T | undefined>;
}

function schema<T>(judge: (value: unknown) => string | undefined): Schema<T> {
  return Object.assign(judge, { optional: (value: unknown) => (value === undefined ? undefined : judge(value)) });
}

const fitting = <T>(fits: (value: unknown) => boolean): Schema<T> => schema((value) => (fits(value) ? undefined : ""));

export const string = fitting<string>((value) => typeof value === "string");
export const boolean = fitting<boolean>((value) => typeof value === "boolean");
/** A safe integer. */
export const int = fitting<number>(Number.isSafeInteger);
export const stringLike = (pattern: RegExp) =>
  fitting<string>((value) => typeof value === "string" && pattern.test(value));

/** One of these values. */
export const literal = <const T extends string | number | boolean>(allowed: readonly T[]) =>
  fitting<T>((value) => allowed.includes(value as T));

export type Fields = Readonly<Record<string, DocumentSchema<unknown>>>;

type Optional<F> = { [K in keyof F]: undefined extends Infer<F[K]> ? K : never }[keyof F];
type Flat<T> = { readonly [K in keyof T]: T[K] };
/** What fits an object of these fields. */
export type ObjectOf<F> = Flat<
  { [K in Exclude<keyof F, Optional<F>>]: Infer<F[K]> } & { [K in Optional<F>]?: Infer<F[K]> }
>;

/** An object whose fields fit; it may have others. */
export function object<const F extends Fields>(fields: F): Schema<ObjectOf<F>> & { readonly fields: F } {
  const all = Object.entries(fields);
  const judge = (value: unknown) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return "";
    for (const [name, judgeField] of all) {
      const where = judgeField((value as Readonly<Record<string, unknown>>)[name]);
      if (where !== undefined) return where === "" ? name : `${name}.${where}`;
    }
    return undefined;
  };
  return Object.assign(schema<ObjectOf<F>>(judge), { fields });
}
