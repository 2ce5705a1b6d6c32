/** What change events say about a change of a document, given what its schema shows. */
import { isDeepStrictEqual } from "node:util";
import type { Declaration } from "../engine/indexes.ts";
import type { Change } from "../port.ts";
import type { Fields } from "./codec.ts";

export type ShownChange = Pick<Change<object>, "type" | "shown" | "former" | "noted">;

/** The part of a schema that determines change events. */
export interface View<T> {
  readonly shown: (doc: T) => object | undefined;
  readonly tracked?: readonly string[] | undefined;
  readonly noted?: ((doc: T) => string | undefined) | undefined;
}

/** Undefined when the schema shows nothing. */
export const viewOf = <T>({ shown, tracked, noted }: Declaration): View<T> | undefined =>
  shown && { shown: shown as View<T>["shown"], tracked, noted: noted as View<T>["noted"] };

/** Undefined when the change is not visible. */
export function shownChange<T>(
  { shown, tracked = [], noted }: View<T>,
  before: T | undefined,
  after: T,
): ShownChange | undefined {
  const was = before && shown(before);
  const is = shown(after);
  const change = (news: ShownChange): ShownChange => {
    const note = noted?.(after);
    return note === undefined ? news : { ...news, noted: note };
  };
  if (is === undefined) return was && change({ type: "deleted", shown: was });
  if (was === undefined) return change({ type: "created", shown: is });
  if (isDeepStrictEqual(was, is)) return undefined;
  const former = part(was, tracked);
  const isTracked = !isDeepStrictEqual(former, part(is, tracked));
  return change({ type: "updated", shown: is, ...(isTracked && { former }) });
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
