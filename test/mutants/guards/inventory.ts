import type { Guarded } from "../mutant.ts";
import { outbox } from "./outbox.ts";
import { orderRecovery, reservationRules } from "./reservations.ts";

const rules: Guarded = {
  file: "services/inventory/rules.ts",
  mutants: [
    ...reservationRules,
    {
      guard: "a new status goes into the outbox",
      find: "({ status, statusRev, pending: true } as const)",
      put: "({ status, statusRev } as const)",
    },
    {
      guard: "a status has a number of its own",
      find: "({ status, statusRev, pending: true } as const)",
      put: "({ status, pending: true } as const)",
    },
    {
      guard: "a status is numbered above the one before, though revisions began anew",
      find: "const statusRev = Math.max(rev, doc.statusRev + 1);",
      put: "const statusRev = rev;",
      by: "tests",
    },
    {
      guard: "an entry that is retired is not opened again",
      find: 'if (doc) return isOpen(doc) ? unchanged("OK", doc) : unchanged("NOT_FOUND");',
      put: 'if (isOpen(doc)) return unchanged("OK", doc);',
    },
    {
      guard: "an entry that is open is not opened again",
      find: 'if (doc) return isOpen(doc) ? unchanged("OK", doc) : unchanged("NOT_FOUND");',
      put: 'if (doc && !isOpen(doc)) return unchanged("NOT_FOUND");',
    },
    {
      guard: "an entry that was lost begins anew without units",
      find: 'knownStatusRev !== undefined || listing === "sold" ? 0 : 1',
      put: 'listing === "sold" ? 0 : 1',
      by: "tests",
    },
    {
      guard: "an entry that was lost begins anew with a later status than its pet has",
      find: "Math.max(rev, (knownStatusRev ?? 0) + 1)",
      put: "rev",
      by: "tests",
    },
    {
      guard: "an order of a pet that is not available is refused",
      find: 'if (listing !== "available" || quantity === 0) return "NOT_AVAILABLE";',
      put: 'if (quantity === 0) return "NOT_AVAILABLE";',
    },
    {
      guard: "an order of a pet that is sold out is refused as such",
      find: 'listing !== "available" || quantity === 0',
      put: 'listing !== "available"',
    },
    {
      guard: "no more is sold than there is",
      find: 'if (quantity < units) return "INSUFFICIENT_STOCK";',
      put: "",
    },
    {
      guard: "open orders of a pet are bounded",
      find: 'return openOrders >= MAX_OPEN_ORDERS ? "TOO_MANY_OPEN_ORDERS" : undefined;',
      put: "return undefined;",
      by: "tests",
    },
    {
      guard: "only an open entry gives units",
      after: "export const reserve =",
      find: 'if (!isOpen(doc)) return unchanged("NOT_FOUND");',
      put: 'if (!doc) return unchanged("NOT_FOUND");',
    },
    {
      guard: "units are taken only if the stock allows it now",
      find: "if (refusal) return unchanged(refusal, doc);",
      put: "",
    },
    {
      guard: "only an open entry is changed",
      after: "export const update =",
      find: "if (!isOpen(doc)) throw inventoryNotFound(petId);",
      put: "if (!doc) throw inventoryNotFound(petId);",
    },
    {
      guard: "If-Match is judged in the write",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "stock and reservations together are bounded",
      find: "if (quantity + reserved > MAX_UNITS) throw tooManyUnits(reserved);",
      put: "",
      by: "tests",
    },
    {
      guard: "a restock counts what came in",
      find: "received: received + quantity - before,",
      put: "",
    },
    {
      guard: "stock makes a pet that was listed as sold available again",
      find: 'quantity > 0 && listing === "sold" ? "available" : listing',
      put: "listing",
      by: "tests",
    },
    {
      guard: "only an open entry is listed",
      find: 'if (!isOpen(found)) return unchanged("NOT_FOUND");',
      put: 'if (!found) return unchanged("NOT_FOUND");',
    },
    {
      guard: "a listing that comes again or late gets its first outcome, or is stale",
      find: "if (before) return unchanged(before, found);",
      put: "",
    },
    {
      guard: "a pet without stock is not listed as available",
      find: 'listing === "available" && doc.quantity === 0 ? "INSUFFICIENT_STOCK" : "OK"',
      put: '"OK"',
      by: "tests",
    },
    {
      guard: "an entry remembers the outcome of a listing",
      find: "lastOp: { op, outcome, listing }, pending: doc.pending }",
      put: "pending: doc.pending }",
    },
    {
      guard: "a listing leaves an older status in the outbox",
      find: "lastOp: { op, outcome, listing }, pending: doc.pending }",
      put: "lastOp: { op, outcome, listing }, pending: undefined }",
    },
    {
      guard: "a listing is numbered above the status that the pet has",
      find: "const ahead = doc.statusRev > found.statusRev ? { statusRev: doc.statusRev + 1 } : {};",
      put: "const ahead = {};",
      by: "tests",
    },
    {
      guard: "an entry that is retired is retired once",
      find: 'if (doc?.state === "RETIRED") return unchanged("OK");',
      put: "",
    },
    {
      guard: "a retirement that comes again or late gets its first outcome, or is stale",
      after: "export const retire =",
      find: "if (before) return unchanged(before, doc);",
      put: "",
    },
    {
      guard: "an entry with open orders is not retired",
      find: 'if (doc.openOrders > 0) return become(doc, { lastOp: { op, outcome: "OPEN_ORDERS" } }, rev, "OPEN_ORDERS");',
      put: "",
    },
    {
      guard: "an entry remembers that its retirement was refused",
      find: 'become(doc, { lastOp: { op, outcome: "OPEN_ORDERS" } }, rev, "OPEN_ORDERS")',
      put: 'unchanged("OPEN_ORDERS", doc)',
    },
    {
      guard: "an entry that is retired is not visible",
      find: 'state: "RETIRED", visible: undefined, pending',
      put: 'state: "RETIRED", pending',
    },
    {
      guard: "an operation that is older than the latest is stale",
      find: "if (op > lastOp.op) return undefined;",
      put: "if (op !== lastOp.op) return undefined;",
    },
    {
      guard: "an operation that comes again gets its first outcome",
      find: "if (op > lastOp.op) return undefined;",
      put: "if (op >= lastOp.op) return undefined;",
    },
    {
      guard: "another operation of the latest number is stale",
      find: " && listing === lastOp.listing",
      put: "",
      by: "tests",
    },
    {
      guard: "only the status that Pet has stored leaves the outbox",
      find: "doc?.pending && doc.statusRev === publishedRev ?",
      put: "doc?.pending ?",
    },
    {
      guard: "a status that Pet has stored leaves the outbox once",
      find: "doc?.pending && doc.statusRev === publishedRev ?",
      put: "doc && doc.statusRev === publishedRev ?",
    },
    {
      guard: "the next write takes out of the outbox what Pet has stored",
      find: "rule(cleared(doc, publishedRev), rev)",
      put: "rule(doc, rev)",
      by: "tests",
    },
    {
      guard: "an entry with an older status than its pet overtakes it",
      find: "doc.statusRev < kept.statusRev || ",
      put: "",
      by: "tests",
    },
    {
      guard: "an entry with another status of the same number overtakes it",
      find: "doc.statusRev < kept.statusRev || (doc.statusRev === kept.statusRev && doc.status !== kept.status)",
      put: "doc.statusRev < kept.statusRev",
      by: "tests",
    },
    {
      guard: "an entry that is not behind its pet stays as it is",
      find: "if (!isOpen(doc) || !isBehind)",
      put: "if (!isOpen(doc))",
      by: "tests",
    },
    {
      guard: "an entry that is retired overtakes nothing",
      find: "if (!isOpen(doc) || !isBehind)",
      put: "if (!isBehind)",
      by: "tests",
    },
    {
      guard: "an entry that overtakes its pet has a later status",
      find: "statusRev: kept.statusRev + 1",
      put: "statusRev: kept.statusRev",
      by: "tests",
    },
  ],
};

export const inventory: readonly Guarded[] = [rules, orderRecovery, outbox];
