import type { Peer } from "../../peer.ts";
import { monolith } from "../monolith/peer.ts";

/** Shows the effect of coalescing alone, without five processes. */
export const peer: Peer = monolith("monolith-coalesced", "the same, reads coalesced", { COALESCE: "on" });
