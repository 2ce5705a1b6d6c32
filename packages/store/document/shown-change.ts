/** What change events say about a change of a document, given what its schema shows. */
import { isDeepStrictEqual } from "node:util";
import type { Declaration } from "../engine/indexes.ts";
import type { Change } from "../port.ts";
import type { Fields } from "./codec.ts";

export type ShownChange = Pick<Change<object>, "type" | "shown" | "former">;

/** The part of a schema that determines change events. */
export interface View<T> {
  readonly shown: (doc: T) => object | undefined;
  readonly tracked?: readonly string[] | undefined;
}

/** Undefined when the schema shows nothing. */
export const viewOf = <T>({ shown, tracked }: Declaration): View<T> | undefined =>
  shown && { shown: shown as View<T>["shown"], tracked };

/** Undefined when the change is not visible. */
export function shownChange<T>(
  { shown, tracked = [] }: View<T>,
  before: T | undefined,
  after: T,
): ShownChange | undefined {
  const was = before && shown(before);
  const is = shown(after);
  if (is === undefined) return was && { type: "deleted", shown: was };
  if (was === undefined) return { type: "created", shown: is };
  if (isDeepStrictEqual(was, is)) return undefined;
  const former = part(was, tracked);
  const news = { type: "updated", shown: is } as const;
  return isDeepStrictEqual(former, part(is, tracked)) ? news : { ...news, former };
}

/** The members with these names that are present. */
function part(whole: object, names: readonly string[]): Fields {
  const members: Record<string, unknown> = {};
  for (const name of names) {
    const value = (whole as Fields)[name];
    if (value !== undefined) members[name] = value;
  }
  return members;
}
