/** What every record has: its members, those that clients set among them; identifiers, revisions, conditions of a write. */
import { isDeepStrictEqual } from "node:util";
import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { DocumentSchema, ObjectOf } from "@petstore/store/document-schema";
import * as s from "@petstore/store/document-schema";
import { type Decide, type Doc, type Draft, type Infer, keep, put } from "@petstore/store/port";
import { readTraceparent, type TraceContext } from "@petstore/trace/context";
import { field as fieldOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";

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
  /** The caller that began what is pending (`sagas.ts`). Present with `pending`. */
  caller: s.string.optional,
  /** The trace of a write, if it is recorded, and the revision that it made (`observed-store.ts`). */
  trace: s.object({ rev: s.int, traceparent: s.string }).optional,
  /** The day on which it became a tombstone. `expiry.ts` removes it some days later. */
  endedOn: s.int.optional,
  /** Version of the stored fields. It goes up when an older petstore would misunderstand what a newer one stores. */
  format: s.literal([FORMAT]),
});
export type StoredRecord = Infer<typeof recordSchema>;

export const isVisible = <T extends Pick<StoredRecord, "visible">>(doc: T | undefined): doc is T =>
  doc?.visible === true;

/** A document that keeps the trace of its last write. */
export type Traced = Partial<Pick<StoredRecord, "rev" | "trace">>;

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

/** The same rule, whose document is stored with what `also` says of it. */
export const storedWith =
  <T extends Doc, R>(
    rule: Decide<T, R>,
    also: (doc: Draft<T>, before: T | undefined, rev: number) => object,
  ): Decide<T, R> =>
  (before, rev) => {
    const decision = rule(before, rev);
    if (decision.action === "keep") return decision;
    return put({ ...decision.doc, ...also(decision.doc, before, rev) }, decision.result);
  };

/** The same rule with the document after it as the result, so that the next step of a saga needs no read. */
export const documentAfter =
  <T extends Doc>(rule: Decide<T, unknown>): Decide<T, T | undefined> =>
  (doc, rev) => {
    const decision = rule(doc, rev);
    return decision.action === "keep" ? keep(doc) : put(decision.doc, { ...decision.doc, rev } as T);
  };

/** A strong entity tag (RFC 9110, 8.8.3). */
export const toEtag = (version: number): string => `"${version}"`;

/** `id` and `etag` are assigned by the petstore. */
type Input<M> = Omit<M, keyof Message | "id" | "etag">;
type Given<T> = NonNullable<T>;

/** For a member whose stored type differs from its type in the message. */
export interface Conversion<M, S> {
  fromMessage(value: M): S;
  toMessage(value: S): M;
}

/** A schema for each member, and for nothing else. */
type EachOf<M> = { readonly [K in keyof Input<M>]-?: DocumentSchema<unknown> };
type Unknown<M, F> = { readonly [K in Exclude<keyof F, keyof Input<M>>]: never };

/** Conversions for the members whose stored type differs from their type in the message, and for no others. */
type Conversions<M, F> = {
  readonly [K in keyof M & keyof F as [Given<M[K]>, Given<Infer<F[K]>>] extends [Given<Infer<F[K]>>, Given<M[K]>]
    ? never
    : K]: Conversion<Given<M[K]>, Given<Infer<F[K]>>>;
};

/**
 * Declares the members of a record that clients set, once. From this list follow the record's stored fields, their conversions,
 * the fingerprint of a create and the changes of an update. The compiler requires a schema for each member of the message, and
 * a conversion where the message has another type. Fingerprints depend on the order of the members: a new one comes last.
 */
export function members<D extends DescMessage, const F extends EachOf<MessageShape<D>>>(
  desc: D,
  fields: F & Unknown<MessageShape<D>, F>,
  conversions: Conversions<MessageShape<D>, F>,
) {
  type M = MessageShape<D>;
  const as = conversions as Readonly<Record<string, Conversion<unknown, unknown> | undefined>>;
  const all = Object.keys(fields).map((name) => {
    const field = desc.field[name] as DescField;
    return { name, path: field.name, conversion: as[name], isClearable: getOption(field, fieldOption).clearable };
  });
  type Values = Readonly<Record<string, unknown>>;

  const stored = (input: object = {}, { name, conversion }: (typeof all)[number]) => {
    const value = (input as Values)[name];
    return value === undefined || !conversion ? value : conversion.fromMessage(value);
  };

  return {
    fields: fields as F,

    /** What a new record is made from: each member in its place, undefined when it was not sent. */
    fromMessage(input: Input<M> | undefined): ObjectOf<F> {
      const values: Record<string, unknown> = {};
      for (const member of all) values[member.name] = stored(input, member);
      return values as ObjectOf<F>;
    },

    /** The declared members that a stored record has. */
    partOf(doc: ObjectOf<F>): ObjectOf<F> {
      const values: Record<string, unknown> = {};
      for (const { name } of all) {
        const value = (doc as Values)[name];
        if (value !== undefined) values[name] = value;
      }
      return values as ObjectOf<F>;
    },

    /**
     * What an update changes: the members that its mask names, or all without a mask. A clearable member without a value
     * is present and undefined, which removes it; any other member without a value stays.
     */
    changeOf(input: Input<M> | undefined, mask: FieldMask | undefined): Partial<ObjectOf<F>> {
      const values: Record<string, unknown> = {};
      for (const member of all) {
        if (mask && !mask.paths.includes(member.path)) continue;
        const value = stored(input, member);
        if (value !== undefined || member.isClearable) values[member.name] = value;
      }
      return values as Partial<ObjectOf<F>>;
    },

    /** A message of the record, with these members and `others`. */
    toMessage<V extends DescMessage>(
      desc: V,
      values: Partial<ObjectOf<F>>,
      others: MessageInitShape<V>,
    ): MessageShape<V> {
      const message = create(desc, others);
      for (const { name, conversion } of all) {
        const value = (values as Values)[name];
        if (value !== undefined) (message as Record<string, unknown>)[name] = conversion?.toMessage(value) ?? value;
      }
      return message;
    },

    /** Every member as undefined: what a tombstone is left with. */
    empty: Object.fromEntries(all.map(({ name }) => [name, undefined])) as { readonly [K in keyof F]: undefined },
  };
}
