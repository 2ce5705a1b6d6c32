import { isDeepStrictEqual } from "node:util";
import type { Message } from "@bufbuild/protobuf";
import type { Infer } from "@petstore/store/port";
import * as z from "zod";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { DomainError } from "./errors.ts";

/** The highest version of the stored shape that this petstore understands. */
const FORMAT = 1;

/** What every stored record has, whatever it is about. Members that it does not know are those of a newer petstore, and stay. */
export const storedShape = z.object({
  _id: z.int(),
  rev: z.int(),
  /** Moves if and only if the public view does: the entity tag. `rev` moves on every change. */
  version: z.int(),
  /** Present on what the outside may see. Lists read no other documents. */
  listed: z.literal(true).optional(),
  /** Present on what is unfinished. Sweepers read no other documents. */
  todo: z.literal(true).optional(),
  /** In whose name it is finished, by whoever does it (`on-behalf.ts`). Present with `todo`. */
  caller: z.string().optional(),
  /** The period in which it became a tombstone: it is removed at an age (`expiry.ts`). */
  over: z.int().optional(),
  /** Version of the stored shape; it goes up when an older petstore would misunderstand what a newer one stores. */
  format: z.int().max(FORMAT),
});
export type Stored = Infer<typeof storedShape>;

/** A pet's status as it is stored. */
export const statusShape = z.literal(["available", "pending", "sold"]);
export type Status = z.output<typeof statusShape>;

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

/** Identifiers are assigned below 2^53. Any other number may be asked for, but names nothing: undefined. */
export const storedId = (id: bigint): number | undefined =>
  id > 0n && id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : undefined;

/** A reference to another record: stored as its number, or as `none` when it names nothing. */
export const idOr = (none: number) => ({ fromMessage: (id: bigint) => storedId(id) ?? none, toMessage: BigInt });

/**
 * What a document becomes by a change, at its version: moved on if and only if the outside, to which `toMessage` shows
 * documents, can tell the two apart.
 */
export function succeed<D extends Pick<Stored, "version">>(
  doc: D,
  change: Partial<D>,
  toMessage: (doc: D) => Message,
): D {
  const next = { ...doc, ...change, version: doc.version };
  return isSame(toMessage(doc), toMessage(next)) ? next : Object.assign(next, { version: doc.version + 1 });
}

/** `isDeepStrictEqual` is slow for a message as a whole: few of its members have anything deep in them. */
function isSame(a: object, b: object): boolean {
  const [before, after] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const names = Object.keys(before);
  const isEqual = (name: string) => before[name] === after[name] || isDeepStrictEqual(before[name], after[name]);
  return names.length === Object.keys(after).length && names.every(isEqual);
}

/** A strong entity tag (RFC 9110, 8.8.3). */
export const toEtag = (version: number): string => `"${version}"`;

/** What a write asks of the record as it stands, in the fields of its request that travel as headers. */
export type Condition =
  | {
      /** What If-Match takes: the record's tag must be among these. */
      readonly etag?: string | undefined;
      /** What If-None-Match takes: the record's tag must not be among these. */
      readonly ifNoneMatch?: string | undefined;
    }
  | undefined;

/**
 * Judges the conditions of a write on a record that exists, at this version, in the order of RFC 9110, 13.2.2. If-Match
 * compares strongly (13.1.1), so weak tags never match; If-None-Match compares weakly (13.1.2).
 *
 * @throws DomainError ETAG_MISMATCH
 */
export function checkMatch({ etag, ifNoneMatch }: NonNullable<Condition> = {}, version: number): void {
  const current = toEtag(version);
  if (etag !== undefined && !isAnything(etag) && !tagsIn(etag).includes(current))
    throw new DomainError("ETAG_MISMATCH", `The record is at revision ${current} now. Read it and try again.`);
  if (ifNoneMatch === undefined) return;
  if (isAnything(ifNoneMatch) || tagsIn(ifNoneMatch).some((tag) => tag.replace(/^W\//, "") === current))
    throw new DomainError("ETAG_MISMATCH", `The record exists at revision ${current}, which the condition rules out.`);
}

const isAnything = (condition: string): boolean => condition.trim() === "*";

const tagsIn = (condition: string): readonly string[] => condition.match(/(W\/)?"[^"]*"/g) ?? [];
