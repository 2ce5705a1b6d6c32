/** Whether changes come by themselves. */
import { signal } from "@preact/signals";
import type { Kind } from "../records/changes.ts";
import { ofCaller } from "../session.ts";

/**
 * - `connecting`: for the first time.
 * - `live`: whatever happens is shown as it happens.
 * - `reconnecting`: the connection was lost; it is tried again and goes on where it ended.
 * - `offline`: the same, and several attempts have failed.
 * - `resting`: nobody looks at this page, so it holds no connection.
 * - `refused`: this server does not tell changes, or none to this caller.
 */
export type LiveState = "connecting" | "live" | "reconnecting" | "offline" | "resting" | "refused";

export const liveState = signal<LiveState>("connecting");

/** What a caller may read of which records. */
export const readScopes: Readonly<Record<Kind, string>> = {
  pet: "pets:read",
  category: "categories:read",
  order: "orders:read",
  inventory: "inventory:read",
};

export const kinds = Object.keys(readScopes) as readonly Kind[];

/** Kinds of records that this caller may not read, so that nothing is told of them. */
export const denied = ofCaller<readonly Kind[]>([]);
