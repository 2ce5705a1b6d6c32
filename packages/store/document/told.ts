/** What a change of a document tells those who only know what its schema shows. */
import { isDeepStrictEqual } from "node:util";
import type { Change } from "../port.ts";

export type Told = Pick<Change<object>, "type" | "shown">;

/** Undefined when the change is none that could be seen. */
export function told<T>(shownOf: (doc: T) => object | undefined, before: T | undefined, after: T): Told | undefined {
  const was = before && shownOf(before);
  const is = shownOf(after);
  if (is === undefined) return was && { type: "deleted", shown: was };
  if (was === undefined) return { type: "created", shown: is };
  return isDeepStrictEqual(was, is) ? undefined : { type: "updated", shown: is };
}
