/**
 * What a stored document must look like to be believed. What no version of the petstore stores, or only a newer one, is
 * found when it is read, and not by whatever fails on it later. Fields that a shape does not name may hold anything.
 */
import * as z from "zod";

/** A value that fits is used as it is, not as the schema would give it back. */
export type Shape<T> = z.ZodType<T>;

/** `never` for a schema that takes more or less than the values of its field, and for one of no field. */
type Exactly<T, F extends z.ZodRawShape> = {
  readonly [K in keyof T]-?: [T[K], z.output<F[K & string]>] extends [z.output<F[K & string]>, T[K]]
    ? z.ZodType
    : never;
} & { readonly [K in Exclude<keyof F, keyof T>]: never };

/** An object with exactly the fields of T. The compiler wants a schema for each, also for those that may be missing. */
export const shapeOf =
  <T extends object>() =>
  <const F extends z.ZodRawShape>(fields: F & Exactly<T, F>): z.ZodObject<F> =>
    z.object<F>(fields);

/** Says where a value does not fit: a dotted path, "" for the value itself, undefined when all of it fits. */
export function misfit(shape: Shape<unknown>, value: unknown): string | undefined {
  const issue = shape.safeParse(value).error?.issues[0];
  return issue && z.core.toDotPath(issue.path);
}
