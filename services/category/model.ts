import * as s from "@petstore/store/document-schema";
import { type Infer, schema } from "@petstore/store/port";
import { type Category, CategorySchema, NewCategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { namedSchema } from "../records/folded-names.ts";
import { FORMAT, members, type StoredRecord, toEtag, traceparentOf, whileVisible } from "../records/record.ts";
import type { Sagas } from "../records/sagas.ts";

/** The members of a category that clients set. */
export const input = members(NewCategorySchema, { name: s.string, description: s.string.optional }, {});

const paramsSchema = s.object(input.fields);
export type CategoryParams = Infer<typeof paramsSchema>;

/** What callers see of a category. */
export type CategoryView = CategoryParams & Pick<StoredRecord, "version">;

/**
 * A category as stored.
 *
 * ACTIVE -> DELETING (undecided: pets may still belong to it) -> DELETED, or back to ACTIVE. DELETED is a tombstone, without
 * what the client sent.
 */
const categoryDocSchema = s.object({
  ...namedSchema.fields,
  ...input.fields,
  state: s.literal(["ACTIVE", "DELETING", "DELETED"]),
  /** Number of the latest deletion, 0 when there was none. */
  op: s.int,
});
export type CategoryDoc = Infer<typeof categoryDocSchema>;

export const CATEGORIES = {
  ...schema<CategoryDoc>()(
    "categories",
    { visible: ["visible"], name: ["foldedName"], pending: ["pending"], endedOn: ["endedOn"] },
    categoryDocSchema,
    whileVisible((doc: CategoryDoc): CategoryView => ({ ...input.partOf(doc), version: doc.version })),
    [],
    traceparentOf,
  ),
  formats: { newest: FORMAT },
};
export type Categories = Sagas<CategoryDoc, (typeof CATEGORIES)["indexes"], CategoryView>;

export const nameOf = ({ name }: Pick<CategoryDoc, "name">): string => name;
export const isTombstone = ({ state }: Pick<CategoryDoc, "state">): boolean => state === "DELETED";

export const toCategory = (id: number, params: CategoryParams, version: number): Category =>
  input.toMessage(CategorySchema, params, { id: BigInt(id), etag: toEtag(version) });

export const categoryOf = (doc: CategoryDoc): Category => toCategory(doc._id, doc, doc.version);
