import * as s from "@petstore/store/document-schema";
import { type Collection, type Infer, schema } from "@petstore/store/port";
import { type NewPet, NewPetSchema, type Pet, PetSchema } from "#proto/petstore/pet/v1/pet_pb.ts";
import type { UpdatePetRequest } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { namedSchema } from "../records/folded-names.ts";
import {
  FORMAT,
  fromPetStatus,
  idOr,
  members,
  type Status,
  statusSchema,
  toEtag,
  toPetStatus,
  traceparentOf,
  whileVisible,
} from "../records/record.ts";
import type { Sagas } from "../records/sagas.ts";

const factsSchema = s.object({ name: s.string });
/** Fields that concern no other service: stored as the client sent them, under the names of the contract. */
export type PetFacts = Infer<typeof factsSchema>;

/** Used in place of a category id that no category can have. It is refused before it is stored. */
export const NO_CATEGORY = 0;

/** The members of a pet that clients set: its facts, and those that concern other services. */
const input = members(
  NewPetSchema,
  { ...factsSchema.fields, categoryId: s.int, status: statusSchema.optional },
  { categoryId: idOr(NO_CATEGORY), status: { fromMessage: fromPetStatus, toMessage: toPetStatus } },
);

/** What callers see of a pet. */
const viewSchema = s.object({ facts: factsSchema, categoryId: s.int, status: statusSchema, version: s.int });
export type PetView = Infer<typeof viewSchema>;

/** A change of a pet in which other services take part: stored first, then carried out (`change-pet.ts`). */
const intentSchema = s.object({
  /** Identifies the operation at Inventory. */
  op: s.int,
  /** All facts after the change; a removed one is absent. */
  facts: factsSchema.optional,
  categoryId: s.int.optional,
  listing: statusSchema.optional,
  delete: s.literal([true]).optional,
});
export type Intent = Infer<typeof intentSchema>;

const petRefusalSchema = s.literal([
  "CATEGORY_NOT_FOUND",
  "INSUFFICIENT_STOCK",
  "PET_HAS_OPEN_ORDERS",
  "CONCURRENT_UPDATE",
]);
export type PetRefusal = Infer<typeof petRefusalSchema>;

/** Outcome of an intent. Kept in the document, so that all callers that advance the intent get the same answer. */
const intentEndSchema = s.object({
  op: s.int,
  refusal: petRefusalSchema.optional,
  /** The pet as the change left it; absent after a refusal or a deletion. */
  shown: viewSchema.optional,
});
export type IntentEnd = Infer<typeof intentEndSchema>;

/**
 * A pet as stored.
 *
 * CREATING (counts as a member of its category, not visible) -> ACTIVE -> DELETED; or CREATING -> ABORTED, or ABORTED at once
 * under a key: its category is gone. ABORTED and DELETED are tombstones.
 */
const petDocSchema = s.object({
  ...namedSchema.fields,
  ...viewSchema.fields,
  state: s.literal(["CREATING", "ACTIVE", "ABORTED", "DELETED"]),
  /** The category that the pet keeps from being deleted. */
  member: s.int.optional,
  /** The category that an intent moves the pet to. It must not be deleted meanwhile either. */
  joining: s.int.optional,
  /** How the pet was listed at its creation. */
  listing: statusSchema,
  /** Revision of `status` at Inventory: an older status never replaces a newer one. */
  statusRev: s.int,
  /** Status in the answer to the creation. */
  firstStatus: statusSchema.optional,
  /** Number of the latest operation. */
  op: s.int,
  intent: intentSchema.optional,
  last: intentEndSchema.optional,
});
export type PetDoc = Infer<typeof petDocSchema>;

export const PETS = {
  ...schema<PetDoc>()(
    "pets",
    {
      visible: ["visible"],
      category: ["visible", "categoryId"],
      status: ["visible", "status"],
      categoryStatus: ["visible", "categoryId", "status"],
      name: ["foldedName"],
      member: ["member"],
      joining: ["joining"],
      pending: ["pending"],
      endedOn: ["endedOn"],
    },
    petDocSchema,
    whileVisible((doc: PetDoc) => viewOf(doc)),
    ["categoryId"],
    traceparentOf,
  ),
  formats: { newest: FORMAT },
};
export const nameOf = ({ facts }: Pick<PetDoc, "facts">): string => facts.name;
export const isTombstone = ({ state }: Pick<PetDoc, "state">): boolean => state === "ABORTED" || state === "DELETED";
export type Pets = Sagas<PetDoc, (typeof PETS)["indexes"], PetView>;

/** Whether pets may join a category. A guard does not exist until a deletion of its category writes it. */
const deletionGuardSchema = s.object({
  _id: s.int,
  rev: s.int,
  closed: s.boolean,
  /** Number of the deletion that closed it last. */
  op: s.int,
  /** The day on which it was closed. Absent while it is open: an open guard does not expire, as it may be closed again. */
  endedOn: s.int.optional,
});
export type DeletionGuardDoc = Infer<typeof deletionGuardSchema>;
export const DELETION_GUARDS = schema<DeletionGuardDoc>()(
  "deletion_guards",
  { endedOn: ["endedOn"] },
  deletionGuardSchema,
);
export type DeletionGuards = Collection<DeletionGuardDoc, (typeof DELETION_GUARDS)["indexes"]>;

/** What a client sends about a new pet. The order of members is fixed, so that equal requests have equal fingerprints. */
export interface PetParams {
  readonly facts: PetFacts;
  readonly categoryId: number;
  readonly listing?: Status | undefined;
}
export function paramsOf(pet: NewPet | undefined): PetParams {
  const { categoryId, status: listing, ...facts } = input.fromMessage(pet);
  return { facts, categoryId, listing };
}

/** What an update changes. An absent member stays; a fact that is present but undefined is removed. */
export type PetChange = Omit<Partial<PetParams>, "facts"> & { readonly facts?: Partial<PetFacts> | undefined };
export function changeOf({ pet, updateMask }: UpdatePetRequest): PetChange {
  const { categoryId, status: listing, ...facts } = input.changeOf(pet, updateMask);
  return { facts, categoryId, listing };
}

/** The facts of a tombstone. */
export const NO_FACTS: PetFacts = { name: "" };

const viewNames = Object.keys(viewSchema.fields) as (keyof PetView)[];

/** The view of a pet, without the other members that a document has. */
export function viewOf(pet: PetView): PetView {
  const view: Partial<Record<keyof PetView, unknown>> = {};
  for (const name of viewNames) view[name] = pet[name];
  return view as PetView;
}

export const toPet = (id: number, { facts, categoryId, status, version }: PetView): Pet =>
  input.toMessage(PetSchema, { ...facts, categoryId, status }, { id: BigInt(id), etag: toEtag(version) });

export const petOf = (doc: PetDoc): Pet => toPet(doc._id, doc);
