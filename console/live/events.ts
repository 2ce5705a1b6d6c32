/** What the client tells of the store, and how the page says it. */
import type { StoreEvent } from "../../packages/client/events.ts";
import { statusWord } from "../parts/status.tsx";
import type { Kind, Kinds } from "../records/changes.ts";

export type LiveEvent = StoreEvent;

/** Describes a record in a few words. */
const words: { readonly [K in Kind]: (record: Kinds[K]) => string } = {
  pet: ({ id, name, status }) => `Pet ${id} ${name}: ${statusWord(status)}`,
  category: ({ id, name }) => `Category ${id} ${name}`,
  order: ({ id, petId, complete }) =>
    `Order ${id}${petId === undefined ? "" : ` for pet ${petId}`}: ${complete ? "complete" : "open"}`,
  inventory: ({ petId, quantity, status }) => `Stock of pet ${petId}: ${quantity}, ${statusWord(status)}`,
};

export const wordsOf = <K extends Kind>(kind: K, record: Kinds[K]): string => words[kind](record);
