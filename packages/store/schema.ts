/**
 * What a stored document must look like to be believed. What no version of the petstore stores, or only a newer one, is
 * found when it is read, and not by whatever fails on it later. Fields that a shape does not name may hold anything.
 */
import * as z from "zod";

/** A value that fits is used as it is, not as the schema would give it back. */
export type Shape<T> = z.ZodType<T>;

/** A document of this shape. It is never changed, only succeeded by another. */
export type Shaped<S extends z.ZodType> = Readonly<z.output<S>>;

/** Says where a value does not fit: a dotted path, "" for the value itself, undefined when all of it fits. */
export function misfit(shape: Shape<unknown>, value: unknown): string | undefined {
  const issue = shape.safeParse(value).error?.issues[0];
  return issue && z.core.toDotPath(issue.path);
}
