import { type Collection, type Infer, schema } from "@petstore/store/port";
import * as z from "zod";
import { type NewPet, NewPetSchema, type Pet, PetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import type { UpdatePetRequest } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { members } from "../resource/members.ts";
import type { Sagas } from "../resource/on-behalf.ts";
import { fromPetStatus, idOr, type Status, statusShape, storedShape, toEtag, toPetStatus } from "../resource/record.ts";

const factsShape = z.object({ name: z.string() });
/** What is a pet's own affair: stored as a client said it, under the names of the contract. */
export type PetFacts = Infer<typeof factsShape>;

/** Stands for a category's id that is too high to be one. It is refused before it is stored. */
export const NO_CATEGORY = 0;

/** What a client says about a pet: its facts, and what other services have a say in. */
export const said = members(
  NewPetSchema,
  { ...factsShape.shape, categoryId: z.int(), status: statusShape.optional() },
  { categoryId: idOr(NO_CATEGORY), status: { fromMessage: fromPetStatus, toMessage: toPetStatus } },
);

/** What the outside sees of a pet. */
const viewShape = z.object({ facts: factsShape, categoryId: z.int(), status: statusShape, version: z.int() });
export type PetView = Infer<typeof viewShape>;

/** A change of a pet that other services have a say in: written down first, then carried out by whoever meets it. */
const intentShape = z.object({
  /** Names the operation at Inventory. */
  op: z.int(),
  /** All facts as they will be: one that is removed is not among them. */
  facts: factsShape.optional(),
  categoryId: z.int().optional(),
  listing: statusShape.optional(),
  delete: z.literal(true).optional(),
});
export type Intent = Infer<typeof intentShape>;

const refusalShape = z.literal([
  "CATEGORY_NOT_FOUND",
  "INSUFFICIENT_STOCK",
  "PET_HAS_OPEN_ORDERS",
  "CONCURRENT_UPDATE",
]);
export type Refusal = z.output<typeof refusalShape>;

/** How an intent ended. Kept in the document, so that all who drove it answer alike. */
const intentEndShape = z.object({
  op: z.int(),
  refusal: refusalShape.optional(),
  /** The pet as the change left it; absent after a refusal or a deletion. */
  shown: viewShape.optional(),
});
export type IntentEnd = Infer<typeof intentEndShape>;

/**
 * A pet as it is stored.
 *
 * CREATING (counts as a member of its category, not listed) -> ACTIVE -> DELETED; or CREATING -> VOID: refused, or its id
 * was given up. VOID and DELETED are tombstones.
 */
const petShape = z.object({
  ...storedShape.shape,
  ...viewShape.shape,
  state: z.literal(["CREATING", "ACTIVE", "VOID", "DELETED"]),
  /** The category, as long as the pet keeps it from being deleted. */
  member: z.int().optional(),
  /** The category that an intent moves the pet to: it must not be deleted meanwhile either. */
  joining: z.int().optional(),
  /** How the pet was listed at its creation. */
  listing: statusShape,
  /** Revision of `status` at Inventory: older news never replaces newer. */
  statusRev: z.int(),
  /** Status in the answer to the creation. */
  firstStatus: statusShape.optional(),
  /** Number of the latest operation. */
  op: z.int(),
  intent: intentShape.optional(),
  last: intentEndShape.optional(),
  /** Why a VOID pet was refused; absent when it was given up. */
  refusal: refusalShape.optional(),
});
export type PetDoc = Infer<typeof petShape>;

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
export type Pets = Sagas<PetDoc, (typeof PETS)["indexes"]>;

/** Whether pets may join a category. There is none until a deletion of the category makes one. */
const gateShape = z.object({
  _id: z.int(),
  rev: z.int(),
  closed: z.boolean(),
  /** The deletion that closed it last. */
  op: z.int(),
  /** The period in which it was closed. One that is open stays: it may be closed again. */
  over: z.int().optional(),
});
export type GateDoc = Infer<typeof gateShape>;
export const GATES = schema<GateDoc>()("gates", { over: ["over"] }, gateShape);
export type Gates = Collection<GateDoc, (typeof GATES)["indexes"]>;

/** What a client says about a new pet, in a fixed order of members. */
export interface PetParams {
  readonly facts: PetFacts;
  readonly categoryId: number;
  readonly listing?: Status | undefined;
}
export function paramsOf(pet: NewPet | undefined): PetParams {
  const { categoryId, status: listing, ...facts } = said.fromMessage(pet);
  return { facts, categoryId, listing };
}

/** What an update changes. Absent means unchanged; a fact that is there but undefined is removed. */
export type PetChange = Omit<Partial<PetParams>, "facts"> & { readonly facts?: Partial<PetFacts> | undefined };
export function changeOf({ pet, updateMask }: UpdatePetRequest): PetChange {
  const { categoryId, status: listing, ...facts } = said.changeOf(pet, updateMask);
  return { facts, categoryId, listing };
}

/** A pet of which nothing is known any more. */
export const NO_FACTS: PetFacts = { name: "" };

/** The view alone of what may be more, such as the document. */
export const viewOf = (pet: PetView): PetView => {
  const view = Object.keys(viewShape.shape).map((name) => [name, pet[name as keyof PetView]]);
  return Object.fromEntries(view);
};

export const toPet = (id: number, { facts, categoryId, status, version }: PetView): Pet =>
  said.toMessage(PetSchema, { ...facts, categoryId, status }, { id: BigInt(id), etag: toEtag(version) });

/** A pet as the outside sees it. */
export const shown = (doc: PetDoc): Pet => toPet(doc._id, doc);
