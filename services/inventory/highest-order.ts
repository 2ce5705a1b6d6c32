/**
 * The highest order that any entry has known. After Order was restored from an older copy, its counter goes on above it. It is
 * read from entries that are changed or read anyway, and stored behind them, so that no order costs a write for it. A crash
 * loses what was new in the last second, except for open orders, whose entries are read again.
 */
import { background, type CallContext } from "@petstore/rpc/call";
import * as s from "@petstore/store/document-schema";
import { type Collection, type Decide, type Infer, keep, put, schema } from "@petstore/store/port";
import type { Deps, Worker } from "../records/module.ts";
import type { InventoryDoc } from "./model.ts";
import { highestOrder } from "./rules.ts";

const markSchema = s.object({ _id: s.string, rev: s.int, order: s.int });
type MarkDoc = Infer<typeof markSchema>;
export const MARKS = schema<MarkDoc>()("marks", {}, markSchema);

/** The only document. */
const HIGHEST_ORDER = "highest order";
const INTERVAL_MS = 1_000;

export interface HighestOrder {
  /** Notes what an entry knows. */
  note(entry: InventoryDoc): void;
  get(callContext: CallContext): Promise<number>;
  readonly worker: Worker;
}

export function createHighestOrder(marks: Collection<MarkDoc>, deps: Pick<Deps, "clock" | "random">): HighestOrder {
  let [noted, stored] = [0, 0];
  return {
    note(entry) {
      noted = Math.max(noted, highestOrder(entry));
    },
    async get(callContext) {
      const mark = await marks.get(HIGHEST_ORDER, { ...callContext, latest: true });
      return Math.max(noted, mark?.order ?? 0);
    },
    worker: {
      name: "inventory.highest-order",
      everyMs: INTERVAL_MS,
      async run() {
        if (noted <= stored) return 0;
        stored = await marks.update(HIGHEST_ORDER, raise(noted), background(deps, "highest-order"));
        return 1;
      },
    },
  };
}

/** Raises the mark, which never falls. */
const raise =
  (order: number): Decide<MarkDoc, number> =>
  (doc) =>
    doc && doc.order >= order ? keep(doc.order) : put({ _id: HIGHEST_ORDER, order }, order);
