/** Whether MongoDB has several members, so that another member may have become the primary unnoticed. */
import type { MongoClient, TopologyDescription } from "mongodb";

/** Servers that hide the members behind them count as several. */
const ROUTERS: readonly string[] = ["Mongos", "LoadBalancer"];
/** Servers that say nothing about members: not reached, or in no replica set yet. */
const SILENT: readonly string[] = ["Unknown", "PossiblePrimary", "RSGhost"];

/** Judges by the last topology that was heard of; true until there is one. */
export function followMembers(client: Pick<MongoClient, "on">): () => boolean {
  let several = true;
  client.on("topologyDescriptionChanged", ({ newDescription }: { newDescription: TopologyDescription }) => {
    const servers = [...newDescription.servers.values()].filter(({ type }) => !SILENT.includes(type));
    if (servers.length > 0)
      several = servers.some(({ type, allHosts }) => ROUTERS.includes(type) || allHosts.length > 1);
  });
  return () => several;
}
