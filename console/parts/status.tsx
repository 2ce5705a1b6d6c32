import { PetStatus } from "@petstore/client";

const words: Readonly<Record<PetStatus, string>> = {
  [PetStatus.UNSPECIFIED]: "unknown",
  [PetStatus.AVAILABLE]: "available",
  [PetStatus.PENDING]: "pending",
  [PetStatus.SOLD]: "sold",
};

export const statusWord = (status: PetStatus | undefined): string =>
  words[status ?? PetStatus.UNSPECIFIED] ?? "unknown";

/** The status for a word in the page's address. */
export const statusOf = (word: string | null): PetStatus | undefined =>
  [PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD].find((status) => words[status] === word);

export const statusOptions = ["available", "pending", "sold"].map((word) => [word, word] as const);

export const Status = ({ status }: { readonly status: PetStatus | undefined }) => <Chip word={statusWord(status)} />;

export const Chip = ({ word }: { readonly word: string }) => <span class={`chip ${word}`}>{word}</span>;
