/** How the page says what a record is, and how one of its words looks. */
import type { PetStatus } from "@petstore/client";
import type { Kind, Kinds } from "../records/changes.ts";

const statuses: readonly PetStatus[] = ["available", "pending", "sold"];

/** The status for a word, such as one in the page's address. */
export const statusOf = (word: string | null): PetStatus | undefined => statuses.find((status) => status === word);

/** A status that only a newer service knows is unknown. */
export const statusWord = (status: PetStatus): string => statusOf(status) ?? "unknown";

export const statusOptions = statuses.map((word) => [word, word] as const);

export const Status = ({ status }: { readonly status: PetStatus }) => <Chip word={statusWord(status)} />;

export const Chip = ({ word }: { readonly word: string }) => <span class={`chip ${word}`}>{word}</span>;

/** What people have written. Its words are not broken, however narrow the column is, unless one is very long. */
export const Name = ({ children: text }: { readonly children: string }) => (
  <span class={/\S{14}/.test(text) ? "long" : undefined}>{text}</span>
);

/** Describes a record in a few words. */
const words: { readonly [K in Kind]: (record: Kinds[K]) => string } = {
  pet: ({ id, name, status }) => `Pet ${id} ${name}: ${statusWord(status)}`,
  category: ({ id, name }) => `Category ${id} ${name}`,
  order: ({ id, petId, complete }) =>
    `Order ${id}${petId === undefined ? "" : ` for pet ${petId}`}: ${complete ? "complete" : "open"}`,
  inventory: ({ petId, quantity, status }) => `Stock of pet ${petId}: ${quantity}, ${statusWord(status)}`,
};

export const wordsOf = <K extends Kind>(kind: K, record: Kinds[K]): string => words[kind](record);
