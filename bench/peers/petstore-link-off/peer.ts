import type { Peer } from "../../peer.ts";
import { onMongodb, petstore } from "../petstore/peer.ts";

/** Makes every call between the processes a gRPC request of its own. */
export const peer: Peer = petstore(
  { name: "petstore-link-off", title: "petstore, plain gRPC between its processes", data: "petstore" },
  (place) => ({ ...onMongodb(place), LINK: "off" }),
);
