import { create } from "@bufbuild/protobuf";
import * as z from "zod";
import { type Category, CategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { type Stored, storedShape, toEtag } from "#shared/record.ts";
import { shapeOf } from "#shared/shape.ts";
import { schema } from "#shared/store/port.ts";

/**
 * A category as it is stored.
 *
 * ACTIVE -> DELETING (not decided: pets may still turn up) -> DELETED, or back to ACTIVE. VOID was never a category: its id
 * was taken and given up. DELETED and VOID are tombstones without name and description.
 */
export interface CategoryDoc extends Stored {
  readonly state: "ACTIVE" | "DELETING" | "DELETED" | "VOID";
  readonly name: string;
  readonly description?: string | undefined;
  /** Number of the latest deletion, 0 when there was none. */
  readonly op: number;
}

const categoryShape = shapeOf<CategoryDoc>()({
  ...storedShape.shape,
  state: z.literal(["ACTIVE", "DELETING", "DELETED", "VOID"]),
  name: z.string(),
  description: z.string().optional(),
  op: z.int(),
});

export const CATEGORIES = schema<CategoryDoc>()(
  "categories",
  { listed: ["listed"], todo: ["todo"], over: ["over"] },
  categoryShape,
);

export const isTombstone = ({ state }: Pick<CategoryDoc, "state">): boolean => state === "DELETED" || state === "VOID";

/** What a client says about a category, in a fixed order of members. */
export interface CategoryParams {
  readonly name: string;
  readonly description?: string | undefined;
}

export const toCategory = (id: number, { name, description }: CategoryParams, version: number): Category =>
  create(CategorySchema, {
    id: BigInt(id),
    name,
    etag: toEtag(version),
    ...(description === undefined ? {} : { description }),
  });
