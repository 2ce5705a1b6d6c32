import { beside } from "./beside.ts";
import { bodies } from "./bodies.ts";
import type { Case } from "./case.ts";
import { categories } from "./categories.ts";
import { conditions } from "./conditions.ts";
import { filters } from "./filters.ts";
import { http } from "./http.ts";
import { ids } from "./ids.ts";
import { inventory } from "./inventory.ts";
import { keys } from "./keys.ts";
import { listing } from "./listing.ts";
import { lists } from "./lists.ts";
import { names } from "./names.ts";
import { oneListed } from "./one-listed.ts";
import { orderChanges } from "./order-changes.ts";
import { orders } from "./orders.ts";
import { pets } from "./pets.ts";
import { rpc } from "./rpc.ts";
import { values } from "./values.ts";

/** All cases, by what they are about. */
export const cases: Readonly<Record<string, readonly Case[]>> = {
  categories,
  pets,
  listing,
  orders,
  "changes of orders": orderChanges,
  inventory,
  lists,
  filters,
  names,
  identifiers: ids,
  conditions,
  "one listed pet": oneListed,
  rpc,
  beside,
  keys,
  values,
  bodies,
  http,
};
