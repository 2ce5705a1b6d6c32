/**
 * Resume tokens: a place in the changes of a collection and, before the end of a snapshot, the last record that it told. Opaque
 * to callers. A checksum tells one that was cut or mangled, which might else be another place.
 */
import { createHash } from "node:crypto";
import type { Position } from "@petstore/store/port";
import { DomainError } from "./errors.ts";

export interface Place {
  readonly position: Position;
  readonly snapshot?: SnapshotPlace | undefined;
}

export interface SnapshotPlace {
  /** 0 before the first record. */
  readonly after: number;
  /** Stands for the filters (`boundTo`). */
  readonly bound: string;
}

/** `kind` is what is watched, such as "pet". */
export function writeResumeToken(kind: string, { position, snapshot }: Place): string {
  const text = [kind, position, ...(snapshot ? [snapshot.after, snapshot.bound] : [])].join(".");
  return `${text}.${checksum(text)}`;
}

/** Throws VALIDATION_FAILED for what was not written for changes of this kind and, within a snapshot, these filters. */
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
