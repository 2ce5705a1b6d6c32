import { type Infer, schema } from "@petstore/store/port";
import * as z from "zod";
import { type Category, CategorySchema, NewCategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { members } from "../resource/members.ts";
import { storedShape, toEtag } from "../resource/record.ts";

/** What a client says about a category. */
export const said = members(NewCategorySchema, { name: z.string(), description: z.string().optional() }, {});

const paramsShape = z.object(said.fields);
export type CategoryParams = Infer<typeof paramsShape>;

/**
 * A category as it is stored.
 *
 * ACTIVE -> DELETING (not decided: pets may still turn up) -> DELETED, or back to ACTIVE. VOID was never a category: its id
 * was taken and given up. DELETED and VOID are tombstones without what the client said.
 */
const categoryShape = z.object({
  ...storedShape.shape,
  ...said.fields,
  state: z.literal(["ACTIVE", "DELETING", "DELETED", "VOID"]),
  /** Number of the latest deletion, 0 when there was none. */
  op: z.int(),
});
export type CategoryDoc = Infer<typeof categoryShape>;

export const CATEGORIES = schema<CategoryDoc>()(
  "categories",
  { listed: ["listed"], todo: ["todo"], over: ["over"] },
  categoryShape,
);

export const isTombstone = ({ state }: Pick<CategoryDoc, "state">): boolean => state === "DELETED" || state === "VOID";

export const toCategory = (id: number, params: CategoryParams, version: number): Category =>
  said.toMessage(CategorySchema, params, { id: BigInt(id), etag: toEtag(version) });

/** A category as the outside sees it. */
export const shown = (doc: CategoryDoc): Category => toCategory(doc._id, doc, doc.version);
