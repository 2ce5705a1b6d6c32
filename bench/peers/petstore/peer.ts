import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processNames } from "../../../processes/names.ts";
import { withDatabaseName } from "../../../test/harness/mongodb.ts";
import { childrenOf } from "../../measure/proc.ts";
import type { Peer, Place } from "../../peer.ts";
import { type Environment, startNode } from "../../programs.ts";

/** This petstore, as `npm start` starts it. */
export const peer: Peer = petstore({ name: "petstore", title: "petstore, five processes", data: "petstore" });

/**
 * The petstore's processes under its launcher. The launcher only supervises them and is not counted: in production something
 * else does that. The only one of a petstore in one process is the launcher's own.
 */
export function petstore(
  about: Pick<Peer, "name" | "title" | "data">,
  environment: (place: Place) => Environment = onMongodb,
  processes: number = processNames.length,
): Peer {
  return {
    ...about,
    async start(place) {
      const launcher = await startNode(join(import.meta.dirname, "../../../launcher/main.ts"), {
        NODE_ENV: "production",
        PORT_BASE: `${place.port}`,
        LAME_DUCK: "0s",
        ...environment(place),
      });
      let pids = processes === 1 ? [launcher.pid] : [];
      for (; pids.length < processes; pids = childrenOf(launcher.pid)) await sleep(5);
      return { url: `http://127.0.0.1:${place.port}`, pids, stop: launcher.stop };
    },
  };
}

export function onMongodb({ mongoUrl, database }: Place): Environment {
  return { MONGODB_URI: withDatabaseName(mongoUrl, database) };
}

/** The name of a process by its id: it is the last argument of the service's command line; the gateway's has none. */
export function nameOf(pid: number): string {
  const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  return processNames.find((name) => args.includes(name)) ?? "gateway";
}
