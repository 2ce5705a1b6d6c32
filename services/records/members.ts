/**
 * The members of a record that clients set, declared once. From this list follow the record's stored fields, their
 * conversions, the fingerprint of a create and the changes of an update.
 */
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
import type { DocumentSchema, Infer, ObjectOf } from "@petstore/store/document-schema";
import { field as fieldOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";

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
 * Declares the members. The compiler requires a schema for each member of the message, and a conversion where the message
 * has another type. Fingerprints depend on the order of the members: a new one comes last.
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
