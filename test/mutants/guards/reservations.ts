/** Guards of Inventory for orders. */
import type { Guarded, Mutant } from "../mutant.ts";

/** Of services/inventory/rules.ts. */
export const reservationRules: readonly Mutant[] = [
  {
    guard: "units that are held for an order are not taken again",
    find: 'if (held) return unchanged(held.tag === tag ? "OK" : "FENCED", doc);',
    put: "",
  },
  {
    guard: "units that are held under another tag are not given to the order",
    find: 'held.tag === tag ? "OK" : "FENCED"',
    put: '"OK"',
    by: "tests",
  },
  {
    guard: "no units are held for an order that has ended",
    find: "if (valueFor(doc.settled, order) || order <= doc.lowWaterMark)",
    put: "if (order <= doc.lowWaterMark)",
  },
  {
    guard: "no units are held for an order that may have ended and is forgotten",
    find: "if (valueFor(doc.settled, order) || order <= doc.lowWaterMark)",
    put: "if (valueFor(doc.settled, order))",
    by: "tests",
  },
  {
    guard: "the highest order may be an open one",
    find: "Math.max(lastIn(reservations), lastIn(settled), lowWaterMark)",
    put: "Math.max(lastIn(settled), lowWaterMark)",
    by: "tests",
  },
  {
    guard: "the highest order may be one that has ended",
    find: "Math.max(lastIn(reservations), lastIn(settled), lowWaterMark)",
    put: "Math.max(lastIn(reservations), lowWaterMark)",
    by: "tests",
  },
  {
    guard: "the highest order may be a forgotten one",
    find: "Math.max(lastIn(reservations), lastIn(settled), lowWaterMark)",
    put: "Math.max(lastIn(reservations), lastIn(settled))",
    by: "tests",
  },
  {
    guard: "an entry that is retired sells nothing",
    after: "export const commit =",
    find: 'if (!isOpen(doc)) return unchanged("OK", doc);',
    put: 'if (!doc) return unchanged("OK", doc);',
    by: "tests",
  },
  {
    guard: "units that are held are sold, and no others",
    after: "export const commit =",
    find: "if (held) {",
    put: "if (false) {",
  },
  {
    guard: "an order is sold once",
    find: 'if (valueFor(doc.settled, order) === "C" || order <= doc.lowWaterMark)',
    put: "if (order <= doc.lowWaterMark)",
  },
  {
    guard: "an order that may have been sold and is forgotten is not sold again",
    find: 'if (valueFor(doc.settled, order) === "C" || order <= doc.lowWaterMark)',
    put: 'if (valueFor(doc.settled, order) === "C")',
    by: "tests",
  },
  {
    guard: "a complete order whose units went back is sold",
    find: 'if (valueFor(doc.settled, order) === "C" || order <= doc.lowWaterMark)',
    put: "if (valueFor(doc.settled, order) || order <= doc.lowWaterMark)",
    by: "tests",
  },
  {
    guard: "an order that has lost its reservation takes no more than there is",
    find: 'if (doc.quantity < units) return keep({ outcome: "INSUFFICIENT_STOCK", entry: doc, lostReservation: true });',
    put: "",
    by: "tests",
  },
  {
    guard: "an order that has lost its reservation is sold once",
    find: '{ ...moved, ...remember(doc, order, "C") }',
    put: "moved",
    by: "tests",
  },
  {
    guard: "only what is held goes back",
    find: 'if (!held) return unchanged("OK", doc);',
    put: 'if (!doc) return unchanged("OK", doc);',
  },
  {
    guard: "an order that has ended counts no more as open",
    find: "openOrders: doc.openOrders - 1,",
    put: "",
  },
  {
    guard: "an order that has ended holds nothing",
    find: "reservations: withoutOrder(doc.reservations, order),",
    put: "",
  },
  {
    guard: "an order that has ended is remembered",
    find: "...remember(doc, order, ending),",
    put: "",
  },
  {
    guard: "an order is remembered once",
    find: "withOrder(withoutOrder(settled, order), order, ending)",
    put: "withOrder(settled, order, ending)",
    by: "tests",
  },
  {
    guard: "what is remembered of orders that have ended is bounded",
    find: "withOrder(withoutOrder(settled, order), order, ending), MAX_SETTLED)",
    put: "withOrder(withoutOrder(settled, order), order, ending), Number.MAX_SAFE_INTEGER)",
    by: "tests",
  },
  {
    guard: "whatever is forgotten raises the low-water mark",
    find: "lowWaterMark: Math.max(lowWaterMark, dropped)",
    put: "lowWaterMark",
    by: "tests",
  },
  {
    guard: "the low-water mark never falls",
    find: "lowWaterMark: Math.max(lowWaterMark, dropped)",
    put: "lowWaterMark: dropped || lowWaterMark",
    by: "tests",
  },
];

export const orderRecovery: Guarded = {
  file: "services/inventory/order-recovery.ts",
  mutants: [
    {
      guard: "an open order keeps its units",
      find: "if (state !== OrderState.COMPLETE && state !== OrderState.ENDED) return;",
      put: "",
    },
    {
      guard: "what has been settled since it was seen is left alone",
      find: "if (!entry || valueFor(entry.reservations, order) === undefined) return;",
      put: "",
    },
    {
      guard: "the worker sells the units of a complete order",
      find: "if (state === OrderState.COMPLETE) await",
      put: "if (false) await",
    },
    {
      guard: "the worker gives back the units of an order that has ended",
      find: "else await releaseOrder(petId, order, callContext);",
      put: "",
    },
    {
      guard: "a reservation is asked about when it is older than any create",
      find: "clock() - at < MIN_AGE_MS",
      put: "false",
    },
    {
      guard: "one run asks about a bounded number of reservations",
      find: "Math.min(MAX_ASKED, young < 0 ? waiting.length : young)",
      put: "young < 0 ? waiting.length : young",
      by: "tests",
    },
    {
      guard: "reservations that wait for their age are bounded",
      find: " && waiting.length < MAX_WAITING",
      put: "",
      by: "tests",
    },
    {
      guard: "one run reads no entry twice",
      find: ".filter(({ _id }) => !read.has(_id))",
      put: "",
      by: "tests",
    },
    {
      guard: "open orders tell what a crash has forgotten of the highest order",
      find: "highestOrder.note(entry);",
      put: "",
      by: "tests",
    },
    {
      guard: "the highest order outlives its process",
      find: 'await marks.update(HIGHEST_ORDER, raise(noted), background(deps, "highest-order"))',
      put: "noted",
      by: "tests",
    },
    {
      guard: "the highest order never falls",
      find: "doc && doc.order >= order ? keep(doc.order) : put",
      put: "doc && doc.order < 0 ? keep(doc.order) : put",
      by: "tests",
    },
  ],
};
