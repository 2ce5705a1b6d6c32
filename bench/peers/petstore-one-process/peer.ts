import type { Peer } from "../../peer.ts";
import { onMongodb, petstore } from "../petstore/peer.ts";

/** The whole petstore in one process, with one arena as docs/one-process.md advises, and as the launcher sets it for five. */
export const peer: Peer = petstore(
  { name: "petstore-one-process", title: "petstore, one process", data: "petstore" },
  (place) => ({ ...onMongodb(place), SINGLE_PROCESS: "1", MALLOC_ARENA_MAX: "1" }),
  1,
);
