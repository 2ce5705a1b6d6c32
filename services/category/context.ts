/** What the handlers, the saga and the workers of categories work with. */
import type { Client } from "@connectrpc/connect";
import type { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import type { Expiry } from "../resource/expiry.ts";
import type { createKeys, Resolution } from "../resource/idempotency-keys.ts";
import type { Categories, CategoryDoc } from "./model.ts";

export interface CategoryPeers {
  readonly pets: Client<typeof PetInternalService>;
}

export interface CategoryContext extends Deps, CategoryPeers {
  readonly categories: Categories;
  readonly expiry: Expiry;
  readonly keys: ReturnType<typeof createKeys>;
}

/** What has become of a category, for the key that it was created under. A create is decided when it is written. */
export function resolutionOf(doc: CategoryDoc | undefined): Resolution {
  if (!doc) return "unwritten";
  return doc.state === "ABORTED" ? "abandoned" : "accepted";
}
