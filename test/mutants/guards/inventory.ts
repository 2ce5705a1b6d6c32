import type { Guarded } from "../mutant.ts";

const rules: Guarded = {
  file: "services/inventory/rules.ts",
  mutants: [
    {
      guard: "a new status goes into the outbox",
      find: "({ status, statusRev: rev, pending: true } as const)",
      put: "({ status, statusRev: rev } as const)",
    },
    {
      guard: "a status has a number of its own",
      find: "({ status, statusRev: rev, pending: true } as const)",
      put: "({ status, pending: true } as const)",
    },
    {
      guard: "an entry that is retired is not opened again",
      find: 'if (doc?.state === "RETIRED") return unchanged("NOT_FOUND");',
      put: "",
    },
    {
      guard: "an entry that is open is not opened again",
      find: 'if (doc?.state === "OPEN") return unchanged("OK", doc);',
      put: "",
    },
    {
      guard: "an order of a pet that is not available is refused",
      find: 'if (doc.listing !== "available" || doc.quantity === 0) return "NOT_AVAILABLE";',
      put: 'if (doc.quantity === 0) return "NOT_AVAILABLE";',
    },
    {
      guard: "an order of a pet that is sold out is refused as such",
      find: 'doc.listing !== "available" || doc.quantity === 0',
      put: 'doc.listing !== "available"',
    },
    {
      guard: "no more is sold than there is",
      find: 'if (doc.quantity < units) return "INSUFFICIENT_STOCK";',
      put: "",
    },
    {
      guard: "open orders of a pet are bounded",
      find: 'return doc.openOrders >= MAX_OPEN_ORDERS ? "TOO_MANY_OPEN_ORDERS" : undefined;',
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
      after: "export const setListing =",
      find: 'if (!isOpen(doc)) return unchanged("NOT_FOUND");',
      put: 'if (!doc) return unchanged("NOT_FOUND");',
    },
    {
      guard: "a listing that comes again or late gets its first outcome, or is stale",
      after: "export const setListing =",
      find: "if (before) return unchanged(before, doc);",
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
      find: "{ ...change, lastOp: { op, outcome }, pending: doc.pending }",
      put: "{ ...change, pending: doc.pending }",
    },
    {
      guard: "a listing leaves an older status in the outbox",
      find: "lastOp: { op, outcome }, pending: doc.pending }",
      put: "lastOp: { op, outcome }, pending: undefined }",
    },
    {
      guard: "an entry that is retired is retired once",
      find: 'if (doc?.state === "RETIRED") return unchanged("OK");',
      put: "",
    },
    {
      guard: "only an open entry is retired",
      after: "export const retire =",
      find: 'if (!isOpen(doc)) return unchanged("NOT_FOUND");',
      put: 'if (!doc) return unchanged("NOT_FOUND");',
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
      find: 'if (op < lastOp.op) return "STALE";',
      put: "",
    },
    {
      guard: "an operation that comes again gets its first outcome",
      find: "return op === lastOp.op ? lastOp.outcome : undefined;",
      put: "return undefined;",
    },
    {
      guard: "only the status that Pet has stored leaves the outbox",
      find: "doc?.pending && doc.statusRev === statusRev ?",
      put: "doc?.pending ?",
    },
    {
      guard: "a status that Pet has stored leaves the outbox once",
      find: "doc?.pending && doc.statusRev === statusRev ?",
      put: "doc && doc.statusRev === statusRev ?",
    },
  ],
};

const publisher: Guarded = {
  file: "services/inventory/outbox-publisher.ts",
  mutants: [
    {
      guard: "Pet has stored a status before it leaves the outbox",
      find: "const { petId } = await pets.applyStatuses({ statuses }, outgoing(clock, callContext));",
      put: `await Promise.all(due.map(({ _id, statusRev }) => entries.update(_id, markPublished(statusRev), callContext)));
    const { petId } = await pets.applyStatuses({ statuses }, outgoing(clock, callContext));`,
    },
    {
      guard: "only what Pet has stored leaves the outbox",
      find: "const published = due.filter(({ _id }) => applied.has(_id));",
      put: "const published = due;",
    },
    {
      guard: "what Pet has stored leaves the outbox",
      find: "const published = due.filter(({ _id }) => applied.has(_id));",
      put: "const published: typeof due = [];",
    },
    {
      guard: "a status that is under way is not sent again",
      find: "if (sent && sent.newest.statusRev >= statusRev) return sent.end.promise;",
      put: "",
      by: "tests",
    },
    {
      guard: "of what waits the newest is sent",
      find: "known && known.newest.statusRev > statusRev ? known.newest : { _id, status, statusRev }",
      put: "known?.newest ?? { _id, status, statusRev }",
      by: "tests",
    },
    {
      guard: "what waits does not become older",
      find: "known && known.newest.statusRev > statusRev ? known.newest : { _id, status, statusRev }",
      put: "{ _id, status, statusRev }",
      by: "tests",
    },
    {
      guard: "calls at the same time are bounded",
      find: "while (calls < MAX_CALLS) {",
      put: "while (true) {",
      by: "tests",
    },
    {
      guard: "a call is bounded",
      find: "if (batch.size === MAX_BATCH) break;",
      put: "",
      by: "tests",
    },
    {
      guard: "one call at a time for each pet",
      find: "if (underWay.has(petId)) continue;",
      put: "",
      by: "tests",
    },
    {
      guard: "a status that Pet could not store is left to the worker",
      find: "if (applied.has(petId)) end.resolve();",
      put: "if (true) end.resolve();",
      by: "tests",
    },
    {
      guard: "a pet whose call is over can be sent again",
      find: "for (const petId of batch.keys()) underWay.delete(petId);",
      put: "",
    },
    {
      guard: "a call that is over makes room for the next",
      find: "calls--;\n    startCalls();",
      put: "startCalls();",
    },
    {
      guard: "what waits goes when a call is over",
      find: "calls--;\n    startCalls();",
      put: "calls--;",
    },
    {
      guard: "what waits is bounded",
      find: "if (waiting.size >= MAX_WAITING) return;",
      put: "",
      by: "tests",
    },
    {
      guard: "the worker runs until there is no backlog",
      find: "batch === limit && !stop?.aborted;",
      put: "batch === limit && published === 0 && !stop?.aborted;",
      by: "tests",
    },
  ],
};

export const inventory: readonly Guarded[] = [rules, publisher];
