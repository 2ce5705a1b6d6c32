/** Dependencies shared by the category handlers, saga and workers. */
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../resource/deps.ts";
import type { Expiry } from "../resource/expiry.ts";
import type { NameSearch } from "../resource/folded-names.ts";
import type { Keys } from "../resource/idempotency-keys.ts";
import type { Categories, CategoryDoc } from "./model.ts";

export type CategoryPeers = PeersOf<"category">;

export interface CategoryContext extends Deps, CategoryPeers {
  readonly categories: Categories;
  readonly expiry: Expiry;
  readonly keys: Keys;
  readonly names: NameSearch<CategoryDoc>;
}
