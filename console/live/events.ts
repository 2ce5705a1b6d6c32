/** Reads the messages of `GET /events` as records. */
import { type CloudEvent, recordIn } from "../../packages/client/lines.ts";
import { statusWord } from "../parts/status.tsx";
import type { Kind, Kinds } from "../records/changes.ts";

/** A CloudEvent about a record. */
export interface LiveEvent<K extends Kind = Kind> {
  /** Identifies the change within its kind. */
  readonly id: string;
  readonly kind: K;
  readonly what: "present" | "created" | "updated" | "deleted";
  readonly time: Date | undefined;
  readonly record: Kinds[K];
}

/** One line of the stream: the id to resume from, and an event or an error. */
export interface Told {
  readonly id?: string;
  readonly event?: LiveEvent;
  readonly error?: { readonly code: string; readonly message: string };
}

const NAME = /^petstore\.(pet|category|order|inventory)\.(present|created|updated|deleted)\.v1$/;

/** Ignores events of unknown kinds, which a newer petstore may send. */
export function readTold(line: unknown): Told {
  const { id, event: name = "", data } = line as { id?: string; event?: string; data?: never };
  const told = id === undefined ? {} : { id };
  if (name === "error") return { ...told, error: data ?? { code: "UNAVAILABLE", message: "" } };
  const [, kind, what] = NAME.exec(name) ?? [];
  if (!kind || !data) return told;
  return { ...told, event: eventOf(kind as Kind, what as LiveEvent["what"], data) };
}

function eventOf(kind: Kind, what: LiveEvent["what"], event: CloudEvent): LiveEvent {
  const { id, time } = event;
  return { id, kind, what, time: time ? new Date(time) : undefined, record: recordIn(event) as Kinds[Kind] };
}

/** Describes a record in a few words. */
const words: { readonly [K in Kind]: (record: Kinds[K]) => string } = {
  pet: ({ id, name, status }) => `Pet ${id} ${name}: ${statusWord(status)}`,
  category: ({ id, name }) => `Category ${id} ${name}`,
  order: ({ id, petId, complete }) =>
    `Order ${id}${petId === undefined ? "" : ` for pet ${petId}`}: ${complete ? "complete" : "open"}`,
  inventory: ({ petId, quantity, status }) => `Stock of pet ${petId}: ${quantity}, ${statusWord(status)}`,
};

export const wordsOf = <K extends Kind>(kind: K, record: Kinds[K]): string => words[kind](record);
