import { create } from "@bufbuild/protobuf";
import * as z from "zod";
import { type NewPet, type Pet, PetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import { type Status, type Stored, statusShape, storedShape, toEtag, toPetStatus } from "#shared/record.ts";
import { shapeOf } from "#shared/shape.ts";
import { type Collection, type Doc, schema } from "#shared/store/port.ts";

/**
 * What is a pet's own affair: stored as a client said it, under the names of the contract. A further field of this kind
 * is added to the contract and here, and nowhere else.
 */
export interface PetFacts {
  readonly name: string;
}
const factsShape = shapeOf<PetFacts>()({ name: z.string() });
export const factsOf = ({ name = "" }: Partial<NewPet> = {}): PetFacts => ({ name });

/** A change of a pet that other services have a say in: written down first, then carried out by whoever meets it. */
export interface Intent {
  /** Names the operation at Inventory. */
  readonly op: number;
  readonly facts?: Partial<PetFacts> | undefined;
  readonly categoryId?: number | undefined;
  readonly listing?: Status | undefined;
  readonly delete?: true | undefined;
}

export type Refusal = "CATEGORY_NOT_FOUND" | "INSUFFICIENT_STOCK" | "PET_HAS_OPEN_ORDERS" | "CONCURRENT_UPDATE";

/** How an intent ended. Kept in the document, so that all who drove it answer alike. */
export interface IntentEnd {
  readonly op: number;
  readonly refusal?: Refusal | undefined;
  /** The pet as the change left it; absent after a refusal or a deletion. */
  readonly shown?: PetView | undefined;
}

/** What the outside sees of a pet. */
export interface PetView {
  readonly facts: PetFacts;
  readonly categoryId: number;
  readonly status: Status;
  readonly version: number;
}

/**
 * A pet as it is stored.
 *
 * CREATING (counts as a member of its category, not listed) -> ACTIVE -> DELETED; or CREATING -> VOID: refused, or its id
 * was given up. VOID and DELETED are tombstones.
 */
export interface PetDoc extends Stored, PetView {
  readonly state: "CREATING" | "ACTIVE" | "VOID" | "DELETED";
  /** The category, as long as the pet keeps it from being deleted. */
  readonly member?: number | undefined;
  /** The category that an intent moves the pet to: it must not be deleted meanwhile either. */
  readonly joining?: number | undefined;
  /** How the pet was listed at its creation. */
  readonly listing: Status;
  /** Revision of `status` at Inventory: older news never replaces newer. */
  readonly statusRev: number;
  /** Status in the answer to the creation. */
  readonly firstStatus?: Status | undefined;
  /** Number of the latest operation. */
  readonly op: number;
  readonly intent?: Intent | undefined;
  readonly last?: IntentEnd | undefined;
  /** Why a VOID pet was refused; absent when it was given up. */
  readonly refusal?: Refusal | undefined;
}

const viewShape = shapeOf<PetView>()({
  facts: factsShape,
  categoryId: z.int(),
  status: statusShape,
  version: z.int(),
});
const refusalShape = z.literal([
  "CATEGORY_NOT_FOUND",
  "INSUFFICIENT_STOCK",
  "PET_HAS_OPEN_ORDERS",
  "CONCURRENT_UPDATE",
]);
const petShape = shapeOf<PetDoc>()({
  ...storedShape.shape,
  ...viewShape.shape,
  state: z.literal(["CREATING", "ACTIVE", "VOID", "DELETED"]),
  member: z.int().optional(),
  joining: z.int().optional(),
  listing: statusShape,
  statusRev: z.int(),
  firstStatus: statusShape.optional(),
  op: z.int(),
  intent: shapeOf<Intent>()({
    op: z.int(),
    facts: factsShape.partial().optional(),
    categoryId: z.int().optional(),
    listing: statusShape.optional(),
    delete: z.literal(true).optional(),
  }).optional(),
  last: shapeOf<IntentEnd>()({ op: z.int(), refusal: refusalShape.optional(), shown: viewShape.optional() }).optional(),
  refusal: refusalShape.optional(),
});

export const PETS = schema<PetDoc>()(
  "pets",
  {
    listed: ["listed"],
    category: ["listed", "categoryId"],
    status: ["listed", "status"],
    categoryStatus: ["listed", "categoryId", "status"],
    member: ["member"],
    joining: ["joining"],
    todo: ["todo"],
    over: ["over"],
  },
  petShape,
);
export const isTombstone = ({ state }: Pick<PetDoc, "state">): boolean => state === "VOID" || state === "DELETED";
export type Pets = Collection<PetDoc, (typeof PETS)["indexes"]>;

/** Whether pets may join a category. There is none until a deletion of the category makes one. */
export interface GateDoc extends Doc {
  readonly _id: number;
  readonly closed: boolean;
  /** The deletion that closed it last. */
  readonly op: number;
  /** The period in which it was closed. One that is open stays: it may be closed again. */
  readonly over?: number | undefined;
}
const gateShape = shapeOf<GateDoc>()({
  _id: z.int(),
  rev: z.int(),
  closed: z.boolean(),
  op: z.int(),
  over: z.int().optional(),
});
export const GATES = schema<GateDoc>()("gates", { over: ["over"] }, gateShape);
export type Gates = Collection<GateDoc, (typeof GATES)["indexes"]>;

/** What a client says about a new pet, in a fixed order of members. */
export interface PetParams {
  readonly facts: PetFacts;
  readonly categoryId: number;
  readonly listing?: Status | undefined;
}

export const toPet = (id: number, { facts, categoryId, status, version }: PetView): Pet =>
  create(PetSchema, {
    ...facts,
    id: BigInt(id),
    categoryId: BigInt(categoryId),
    status: toPetStatus(status),
    etag: toEtag(version),
  });
