/** What a change of a document tells those who only know what its schema shows. */
import { isDeepStrictEqual } from "node:util";
import type { Change } from "../port.ts";
import type { Fields } from "./codec.ts";

export type Told = Pick<Change<object>, "type" | "shown">;

/** Undefined when the change is none that could be seen. */
export function told<T>(shownOf: (doc: T) => object | undefined, before: T | undefined, after: T): Told | undefined {
  const was = before && shownOf(before);
  const is = shownOf(after);
  if (is === undefined) return was && { type: "deleted", shown: was };
  if (was === undefined) return { type: "created", shown: is };
  return isSame(was, is) ? undefined : { type: "updated", shown: is };
}

/** Most changes show in a simple member, which tells at once: to compare what is deep is slow. */
function isSame(was: object, is: object): boolean {
  const [before, after] = [was as Fields, is as Fields];
  const names = Object.keys(before);
  if (names.length !== Object.keys(after).length) return false;
  const others = names.filter((name) => before[name] !== after[name]);
  return (
    others.every((name) => typeof before[name] === "object") &&
    others.every((name) => isDeepStrictEqual(before[name], after[name]))
  );
}
