import type { Peer } from "../../peer.ts";
import { monolith } from "../monolith/peer.ts";

/** Tells what coalescing alone brings, without five processes. */
export const peer: Peer = monolith("monolith-coalesced", "the same, reads coalesced", { COALESCE: "on" });
