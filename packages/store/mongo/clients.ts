/** The driver's clients, with all that they share among the stores of one process. */
import type { MongoClient, TopologyDescription } from "mongodb";
import { createClient } from "./connect.ts";
import { createTurns } from "./shared-query.ts";

export type Clients = ReturnType<typeof openClients>;

/** Most reads of the past, of each kind. They share the driver's 100 connections with other change streams. */
const MAX_LOOKS = 16;

/** Throws `UnusableServer` for an invalid connection string. */
export function openClients(uri: string, version?: string) {
  const calls = createClient(uri, {}, version);
  let waiting: MongoClient | undefined;
  return {
    calls,
    /** For change streams and builds of indexes, opened on first use: without a socket timeout. */
    patient: () => (waiting ??= createClient(uri, { socketTimeoutMS: 0 }, version)),
    hasSeveralMembers: followMembers(calls),
    /**
     * Limits the reads of the past, each of which takes a connection: `near` for the last minute, `far` for reads that may
     * take as long as the oplog is.
     */
    turns: { near: createTurns(MAX_LOOKS), far: createTurns(MAX_LOOKS) },
    async close(): Promise<void> {
      await waiting?.close();
      await calls.close();
    },
  };
}

/** As `openClients`, for several stores: those with one connection string share clients, which close with the last of them. */
export function sharedClients(): typeof openClients {
  const all = new Map<string, { readonly clients: Clients; users: number }>();
  return (uri, version) => {
    const shared = all.get(uri) ?? { clients: openClients(uri, version), users: 0 };
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

/** Servers that hide the members behind them count as several. */
const ROUTERS: readonly string[] = ["Mongos", "LoadBalancer"];
/** Servers that say nothing about members: not reached, or in no replica set yet. */
const SILENT: readonly string[] = ["Unknown", "PossiblePrimary", "RSGhost"];

/**
 * Whether MongoDB has several members, so that another member may have become the primary unnoticed. Judges by the last
 * topology that was heard of; true until there is one.
 */
export function followMembers(client: Pick<MongoClient, "on">): () => boolean {
  let several = true;
  client.on("topologyDescriptionChanged", ({ newDescription }: { newDescription: TopologyDescription }) => {
    const servers = [...newDescription.servers.values()].filter(({ type }) => !SILENT.includes(type));
    if (servers.length > 0)
      several = servers.some(({ type, allHosts }) => ROUTERS.includes(type) || allHosts.length > 1);
  });
  return () => several;
}
