import type { Peer } from "../../peer.ts";
import { petstore } from "../petstore/peer.ts";

export const peer: Peer = petstore(
  { name: "petstore-embedded", title: "petstore, embedded store", data: "embedded" },
  ({ dataDir }) => ({ DATA_DIR: dataDir }),
);
