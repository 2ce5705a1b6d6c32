import type { Peer } from "../../peer.ts";
import { onMongodb, petstore } from "../petstore/peer.ts";

/** The whole petstore as `npm start -- --single-process` starts it. */
export const peer: Peer = petstore(
  { name: "petstore-one-process", title: "petstore, one process", data: "petstore" },
  (place) => ({ ...onMongodb(place), SINGLE_PROCESS: "1" }),
  1,
);
