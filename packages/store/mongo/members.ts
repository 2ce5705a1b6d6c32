/** Whether MongoDB has several members, so that another than the one that is asked may have become the primary. */
import type { MongoClient, TopologyDescription } from "mongodb";

/** Who knows its members by itself, or stands in front of some that nobody names, counts as many. */
const ROUTERS: readonly string[] = ["Mongos", "LoadBalancer"];
/** Those that say nothing of members: not reached, or in no replica set yet. */
const SILENT: readonly string[] = ["Unknown", "PossiblePrimary", "RSGhost"];

/** By the last that was heard; true until anything was. */
export function followMembers(client: Pick<MongoClient, "on">): () => boolean {
  let several = true;
  client.on("topologyDescriptionChanged", ({ newDescription }: { newDescription: TopologyDescription }) => {
    const servers = [...newDescription.servers.values()].filter(({ type }) => !SILENT.includes(type));
    if (servers.length > 0)
      several = servers.some(({ type, allHosts }) => ROUTERS.includes(type) || allHosts.length > 1);
  });
  return () => several;
}
