/** The state of the page's live updates. */
import { signal } from "@preact/signals";
import type { StoreEvent } from "../../packages/client/events.ts";
import type { Kind } from "../records/changes.ts";
import { ofCaller } from "../session.ts";

/**
 * - `connecting`: for the first time.
 * - `live`: changes are shown as they happen.
 * - `reconnecting`: the connection was lost; the next one continues where it ended.
 * - `offline`: the same, and several attempts have failed.
 * - `resting`: the page is hidden, so it holds no connection.
 * - `refused`: this server sends no events, or none to this caller.
 */
export type LiveState = "connecting" | "live" | "reconnecting" | "offline" | "resting" | "refused";

export const liveState = signal<LiveState>("connecting");

/** The scope that reading each kind of records needs. */
export const readScopes: Readonly<Record<Kind, string>> = {
  pet: "pets:read",
  category: "categories:read",
  order: "orders:read",
  inventory: "inventory:read",
};

export const kinds = Object.keys(readScopes) as readonly Kind[];

/** Kinds of records that this caller may not read, so that their events don't come. */
export const denied = ofCaller<readonly Kind[]>([]);

export type LiveEvent = StoreEvent;
