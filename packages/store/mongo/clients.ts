/** The driver's clients, with all that they share among the stores of one process. */
import type { MongoClient } from "mongodb";
import { createClient } from "./connect.ts";
import { followMembers } from "./members.ts";
import { createTurns, type Turns } from "./turns.ts";

export interface Clients {
  readonly calls: MongoClient;
  /** For change streams, opened on first use. It has no socket timeout: the server answers when there is something new. */
  streams(): MongoClient;
  /** See `Database.hasSeveralMembers`. */
  readonly hasSeveralMembers: () => boolean;
  /**
   * Limits the reads of the past, each of which takes a connection: `near` for the last minute, `far` for reads that may
   * take as long as the oplog is.
   */
  readonly turns: { readonly near: Turns; readonly far: Turns };
  close(): Promise<void>;
}

/**
 * Most reads of the past at a time, of each kind. They share the driver's 100 connections with the streams of the latest
 * changes.
 */
const MAX_LOOKS = 16;

/** Throws `UnusableServer` for an invalid connection string. */
export function openClients(uri: string): Clients {
  const calls = createClient(uri);
  let streaming: MongoClient | undefined;
  return {
    calls,
    streams() {
      streaming ??= createClient(uri, { socketTimeoutMS: 0 });
      return streaming;
    },
    hasSeveralMembers: followMembers(calls),
    turns: { near: createTurns(MAX_LOOKS), far: createTurns(MAX_LOOKS) },
    async close() {
      await streaming?.close();
      await calls.close();
    },
  };
}

/** As `openClients`, for several stores: those with one connection string share clients, which close with the last of them. */
export function sharedClients(): typeof openClients {
  const all = new Map<string, { readonly clients: Clients; users: number }>();
  return (uri) => {
    const shared = all.get(uri) ?? { clients: openClients(uri), users: 0 };
    all.set(uri, shared);
    shared.users++;
    return {
      ...shared.clients,
      async close() {
        if (--shared.users > 0) return;
        all.delete(uri);
        await shared.clients.close();
      },
    };
  };
}
