/** Dependencies shared by the category handlers, saga and workers. */
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../resource/deps.ts";
import type { Expiry } from "../resource/expiry.ts";
import type { createKeys, Resolution } from "../resource/idempotency-keys.ts";
import type { Categories, CategoryDoc } from "./model.ts";

export type CategoryPeers = PeersOf<"category">;

export interface CategoryContext extends Deps, CategoryPeers {
  readonly categories: Categories;
  readonly expiry: Expiry;
  readonly keys: ReturnType<typeof createKeys>;
}

/** Resolution of the idempotency key that created the category. A create is decided as soon as it is written. */
export function resolutionOf(doc: CategoryDoc | undefined): Resolution {
  if (!doc) return "unwritten";
  return doc.state === "ABORTED" ? "abandoned" : "accepted";
}
