import type { PetStatus } from "@petstore/client";

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
