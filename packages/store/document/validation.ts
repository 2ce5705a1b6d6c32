/**
 * Judges stored documents. What no version of the petstore stores, or only a newer one, is found when it is read, and not
 * by whatever fails on it later.
 */
import * as z from "zod";
import type { DocumentSchema } from "../port.ts";

/** Says where a value does not fit: a dotted path, "" for the value itself, undefined when all of it fits. */
export function validationError(schema: DocumentSchema<unknown>, value: unknown): string | undefined {
  const issue = schema.safeParse(value).error?.issues[0];
  return issue && z.core.toDotPath(issue.path);
}
