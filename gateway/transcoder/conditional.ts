/** Conditional reads (RFC 9110, 13.1.2). Conditions on writes are judged by the service, which alone can do it safely. */
import { Refusal } from "./refusal.ts";

// One element of the list, which may be empty, and the comma behind it.
const ELEMENT = /[ \t]*(?:(?:W\/)?("[\x21\x23-\x7E\x80-\xFF]*"))?[ \t]*(,|$)/y;

/** What If-None-Match names: tags without their weakness, or anything. */
export type EntityTags = "*" | ReadonlySet<string>;

/** @throws Refusal INVALID_HEADER when it is neither `*` nor a list of entity tags. */
export function parseIfNoneMatch(value: string): EntityTags {
  if (value.trim() === "*") return "*";
  const tags = new Set<string>();
  ELEMENT.lastIndex = 0;
  for (let more = true; more; ) {
    const element = ELEMENT.exec(value);
    if (!element) break;
    if (element[1] !== undefined) tags.add(element[1]);
    more = element[2] === ",";
    if (!more && tags.size > 0) return tags;
  }
  throw new Refusal("INVALID_HEADER", 'If-None-Match: must be * or a list of entity tags such as "3"');
}

/** Weak comparison: whether the caller has this representation already. */
export const isNotModified = (held: EntityTags, etag: string): boolean =>
  held === "*" || held.has(etag.replace(/^W\//, ""));
