/**
 * Resume tokens: a position in the changes of a collection and, within a snapshot, the last record that was sent. Opaque
 * to callers. A checksum detects a token that was cut off or altered, which might otherwise be valid for another place.
 */
import { createHash } from "node:crypto";
import type { Position } from "@petstore/store/port";
import { DomainError } from "./errors.ts";

export interface Place {
  readonly position: Position;
  readonly snapshot?: SnapshotPlace | undefined;
}

export interface SnapshotPlace {
  /** The id of the last record that was sent; 0 before the first. */
  readonly after: number;
  /** Fingerprint of the filters (`boundTo`). */
  readonly bound: string;
}

/** `kind` is what is watched, such as "pet". */
export function writeResumeToken(kind: string, { position, snapshot }: Place): string {
  const text = [kind, position, ...(snapshot ? [snapshot.after, snapshot.bound] : [])].join(".");
  return `${text}.${checksum(text)}`;
}

/** Throws VALIDATION_FAILED for a token of another kind of changes or, within a snapshot, of other filters. */
export function readResumeToken(kind: string, bound: string, token: string): Place {
  const parts = token.split(".");
  const sum = parts.pop();
  const [given, position = "", after, givenBound, ...others] = parts;
  const isPlace = after === undefined || (/^\d{1,16}$/.test(after) && Number.isSafeInteger(Number(after)));
  if (sum !== checksum(parts.join(".")) || position === "" || !isPlace || others.length > 0)
    throw invalid("must be the resume_token of a message as it was received");
  if (given !== kind) throw invalid(`must come from a stream about the same records, and is from one about "${given}"`);
  if (after === undefined || givenBound === undefined) return { position };
  if (givenBound !== bound) throw invalid("is of a snapshot with other filters, which must be told to its end first");
  return { position, snapshot: { after: Number(after), bound } };
}

const checksum = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 6);

const invalid = (what: string) =>
  new DomainError("VALIDATION_FAILED", `${what}. Begin again without it.`, { path: "resume_token" });
