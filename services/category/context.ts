/** Dependencies shared by the category handlers, saga and workers. */
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../records/deps.ts";
import type { Expiry } from "../records/expiry.ts";
import type { NameSearch } from "../records/folded-names.ts";
import type { Keys } from "../records/idempotency-keys.ts";
import type { Categories, CategoryDoc } from "./model.ts";

export type CategoryPeers = PeersOf<"category">;

export interface CategoryContext extends Deps, CategoryPeers {
  readonly categories: Categories;
  readonly expiry: Expiry;
  readonly keys: Keys;
  readonly names: NameSearch<CategoryDoc>;
}
