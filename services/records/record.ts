import { isDeepStrictEqual } from "node:util";
import type { Message } from "@bufbuild/protobuf";
import * as s from "@petstore/store/document-schema";
import { type Decide, type Doc, type Infer, keep, put } from "@petstore/store/port";
import { readTraceparent, type TraceContext } from "@petstore/trace/context";
import { weakTagAdvice } from "connect-transcoder/http";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { DomainError } from "./errors.ts";

/** The version of the stored fields: the only one that this code reads, where no schema says otherwise (`formats.ts`). */
export const FORMAT = 2;

/** The members that every stored record has. Unknown members come from a newer petstore, and are kept. */
export const recordSchema = s.object({
  _id: s.int,
  rev: s.int,
  /** The entity tag. It goes up if and only if what callers see changes, while `rev` goes up on every change. */
  version: s.int,
  /** Present while callers may see the record. Lists read no other documents. */
  visible: s.literal([true]).optional,
  /** Present while something in the record is unfinished. Recovery workers read no other documents. */
  pending: s.literal([true]).optional,
  /** The caller that began what is pending (`on-behalf.ts`). Present with `pending`. */
  caller: s.string.optional,
  /** The trace of a write, if it is recorded, and the revision that it made (`observed-store.ts`). */
  trace: s.object({ rev: s.int, traceparent: s.string }).optional,
  /** The day on which it became a tombstone. `expiry.ts` removes it some days later. */
  endedOn: s.int.optional,
  /** Version of the stored fields. It goes up when an older petstore would misunderstand what a newer one stores. */
  format: s.literal([FORMAT]),
});
export type StoredRecord = Infer<typeof recordSchema>;

/** A document that keeps the trace of its last write. */
export interface Traced {
  readonly rev?: number;
  readonly trace?: StoredRecord["trace"];
}

/** The traceparent of the write that made this revision. Undefined if its trace is not recorded. */
export const traceparentOf = ({ rev, trace }: Traced): string | undefined =>
  trace && trace.rev === rev ? trace.traceparent : undefined;

export const traceOf = (doc: Traced): TraceContext | undefined => readTraceparent(traceparentOf(doc));

/** For `shown` in a schema: the part of a record that its change events show, as long as it is visible. */
export const whileVisible =
  <D extends Pick<StoredRecord, "visible">, V extends object>(part: (doc: D) => V) =>
  (doc: D): V | undefined =>
    doc.visible && part(doc);

/** A pet's status as it is stored. */
export const statusSchema = s.literal(["available", "pending", "sold"]);
export type Status = Infer<typeof statusSchema>;

const statuses = {
  available: PetStatus.AVAILABLE,
  pending: PetStatus.PENDING,
  sold: PetStatus.SOLD,
} as const satisfies Record<Status, PetStatus>;

export const toPetStatus = (status: Status): PetStatus => statuses[status];

/** The enum must have been validated before. */
export function fromPetStatus(status: PetStatus): Status {
  for (const [name, value] of Object.entries(statuses)) if (value === status) return name as Status;
  throw new TypeError(`${status} is no pet status`);
}

/** The id as a number; undefined for an id that no record has, as ids are assigned from 1 to 2^53-1. */
export const storedId = (id: bigint): number | undefined =>
  id > 0n && id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : undefined;

/** The ids as they are stored, without those that no record can have. */
export const storedIds = (ids: readonly bigint[]): number[] => ids.map(storedId).filter((id) => id !== undefined);

/** A reference to another record: stored as its number, or as `none` when no record can have that id. */
export const idOr = (none: number) => ({ fromMessage: (id: bigint) => storedId(id) ?? none, toMessage: BigInt });

/** The document after a change. Its version goes up if and only if the message that callers see differs. */
export function succeed<D extends Pick<StoredRecord, "version">>(
  doc: D,
  change: Partial<D>,
  toMessage: (doc: D) => Message,
): D {
  const next = { ...doc, ...change, version: doc.version };
  return isDeepStrictEqual(toMessage(doc), toMessage(next)) ? next : Object.assign(next, { version: doc.version + 1 });
}

/** The same rule with the document after it as the result, so that the next step of a saga needs no read. */
export const documentAfter =
  <T extends Doc>(rule: Decide<T, unknown>): Decide<T, T | undefined> =>
  (doc, rev) => {
    const decision = rule(doc, rev);
    return decision.action === "keep" ? keep(doc) : put(decision.doc, { ...decision.doc, rev } as T);
  };

/** A strong entity tag (RFC 9110, 8.8.3). */
export const toEtag = (version: number): string => `"${version}"`;

/** What a write requires of the record's present version (RFC 9110, 13), in the request fields that HTTP sends as headers. */
export interface Preconditions {
  /** What If-Match takes: the record's tag must be among these. */
  readonly etag?: string | undefined;
  /** What If-None-Match takes: the record's tag must not be among these. */
  readonly ifNoneMatch?: string | undefined;
}

/**
 * Judges the preconditions of a write on a record that exists, at this version, in the order of RFC 9110, 13.2.2. If-Match
 * compares strongly (13.1.1), so weak tags never match; If-None-Match compares weakly (13.1.2).
 *
 * @throws DomainError ETAG_MISMATCH
 */
export function checkPreconditions({ etag, ifNoneMatch }: Preconditions, version: number): void {
  const current = toEtag(version);
  if (etag !== undefined && !isAnything(etag) && !tagsIn(etag).includes(current)) {
    const advice = weakTagAdvice(tagsIn(etag)) ?? "Read it and try again.";
    throw new DomainError("ETAG_MISMATCH", `The record is at revision ${current} now. ${advice}`);
  }
  if (ifNoneMatch === undefined) return;
  if (isAnything(ifNoneMatch) || tagsIn(ifNoneMatch).some((tag) => tag.replace(/^W\//, "") === current))
    throw new DomainError("ETAG_MISMATCH", `The record exists at revision ${current}, which the condition rules out.`);
}

const isAnything = (condition: string): boolean => condition.trim() === "*";

const tagsIn = (condition: string): readonly string[] => condition.match(/(W\/)?"[^"]*"/g) ?? [];
