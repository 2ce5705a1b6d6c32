/** What histories have to come to. Most of it is noticed by what is stored. */
import { entriesIn } from "../../../services/inventory/model.ts";
import type { Stored } from "../disk.ts";

export const situations = [
  "jump of time",
  "resumed",
  "snapshot resumed",
  "order asked away while it was placed",
  "key renewed",
  "key given a fresh id",
  "key expired under an attempt",
  "key claimed anew beside a tombstone",
  "key asked again after its record's end",
] as const;
export type Situation = (typeof situations)[number];

export function createNotices(happened: (what: Situation) => void) {
  /** The tag of the units that were held last for an order. */
  const tags = new Map<unknown, string | undefined>();
  /** Tags of attempts whose order was asked away. */
  const askedAway = new Set<unknown>();

  /** Of an order for which units are held only a question of Inventory stores that none will come, without a reason. */
  function ofOrder({ _id, state, refusal, tag }: Stored): void {
    if (state === "ABORTED" && !refusal && tags.has(_id)) askedAway.add(tags.get(_id));
    else if (askedAway.delete(tag)) happened("order asked away while it was placed");
  }

  return (collection: string, after: Stored, before: Stored | undefined): void => {
    if (collection === "inventory")
      for (const [order, value] of entriesIn(String(after.reservations))) tags.set(order, value.split(":")[1]);
    if (collection === "orders" && !before) ofOrder(after);
    if (collection === "keys" && before)
      happened(after.recordId === before.recordId ? "key renewed" : "key given a fresh id");
  };
}
