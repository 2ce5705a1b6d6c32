import type { Guarded } from "../mutant.ts";

const rules: Guarded = {
  file: "services/order/rules.ts",
  mutants: [
    {
      guard: "an order is stored only if its id is absent",
      find: "if (doc) return keep(doc);",
      put: "",
    },
    {
      guard: "an order is aborted only if its id is absent",
      find: "doc ? keep(doc) : become({ _id: id",
      put: "become({ _id: id",
    },
    {
      guard: "an order that is placed as complete is stored as COMPLETE",
      find: 'placed.complete ? "COMPLETE" : "RESERVED"',
      put: '"RESERVED"',
    },
    {
      guard: "an order has the tag of its reservation",
      find: "placed.petId === undefined ? {} : { tag }",
      put: "{}",
    },
    {
      guard: "a tombstone of an order has nothing of it",
      find: "{ ...doc, ...cleared, state }",
      put: "{ ...doc, state }",
    },
    {
      guard: "only an order that is there is changed",
      after: "export const update =",
      find: "if (!doc?.visible) throw orderNotFound(id);",
      put: "if (!doc) throw orderNotFound(id);",
    },
    {
      guard: "If-Match is judged in the write of an order's change",
      after: "export const update =",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "what an order has reserved stays as it is",
      find: "checkFixed(doc, change);",
      put: "",
    },
    {
      guard: "a complete order is not opened again",
      find: "if (complete === false && doc.complete)",
      put: "if (false)",
    },
    {
      guard: "the pet of an order is fixed",
      find: "petId !== undefined && petId !== doc.petId",
      put: "false",
    },
    {
      guard: "the quantity of an order is fixed",
      find: "quantity !== undefined && quantity !== doc.quantity",
      put: "false",
    },
    {
      guard: "an order that is completed is stored as COMPLETE",
      find: 'become(next, completes ? "COMPLETE" : doc.state)',
      put: "become(next, doc.state)",
    },
    {
      guard: "only an order that is there is cancelled",
      after: "export const cancel =",
      find: "if (!doc?.visible) throw orderNotFound(id);",
      put: "if (!doc) throw orderNotFound(id);",
    },
    {
      guard: "If-Match is judged in the write of an order's cancellation",
      after: "export const cancel =",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "only an open order is cancelled",
      find: 'if (doc.state !== "RESERVED")',
      put: "if (false)",
    },
    {
      guard: "whoever cancels an order learns what to release",
      find: 'put(become(doc, "CANCELLED").doc, doc)',
      put: 'become(doc, "CANCELLED")',
    },
  ],
};

const saga: Guarded = {
  file: "services/order/saga.ts",
  mutants: [
    {
      guard: "units are held before their order is stored",
      find: "const reserved = await reserveUnits(",
      put: `doc = await orders.update(attempt.id, insert(attempt.id, params, attempt.tag), callContext);
    const reserved = await reserveUnits(`,
    },
    {
      guard: "an order that is stored is not placed again",
      find: "if (!doc) {",
      put: "if (true) {",
    },
    {
      guard: "a refusal without a key writes nothing",
      find: "if (!attempt.isKeyed) return refusal",
      put: "if (false) return refusal",
    },
    {
      guard: "a refusal under a key is stored before it is answered",
      find: "if (!attempt.isKeyed) return refusal",
      put: "return refusal",
    },
    {
      guard: "an order that is stored as aborted is not answered as placed",
      find: 'if (doc.state === "ABORTED") {',
      put: "if (false) {",
    },
    {
      guard: "a refusal that is stored is the answer",
      find: "if (doc.refusal) return refused(refusalError(doc.refusal, sent));",
      put: "",
    },
    {
      guard: "units are back before a fresh id asks for them",
      find: "await releaseUnits(context, order, callContext);",
      put: "",
    },
    {
      guard: "an order that is placed as complete is sold before it is answered",
      find: "if (order.complete) await commitUnits(context, order, callContext);",
      put: "",
    },
    {
      guard: "a fenced id gives way to a fresh one",
      find: "if (outcome === Outcome.FENCED) return { fencedUpTo: Number(highestOrderId) };",
      put: "",
    },
    {
      guard: "ids that the entry has fenced are not tried any more",
      find: "fencedUpTo: Number(highestOrderId)",
      put: "fencedUpTo: 0",
      by: "tests",
    },
    {
      guard: "an outcome that this version does not know decides nothing",
      find: "if (!refusal) throw unfinished();",
      put: "",
      by: "tests",
    },
    {
      guard: "an order whose units could not be sold is not answered as complete",
      find: "if (outcome !== Outcome.OK)",
      put: "if (false)",
      by: "tests",
    },
    {
      guard: "units are back when that is said",
      find: "await inventory.release({ petId: BigInt(petId), orderId: BigInt(id) }, outgoing(clock, callContext));",
      put: "void inventory.release({ petId: BigInt(petId), orderId: BigInt(id) }, outgoing(clock, callContext)).catch(() => {});",
    },
  ],
};

const handlers: Guarded = {
  file: "services/order/handlers.ts",
  mutants: [
    {
      guard: "a create ends before Inventory asks about its reservation",
      find: "Math.min(call.deadline, clock() + PLACING_TIMEOUT_MS)",
      put: "call.deadline",
      by: "tests",
    },
    {
      guard: "no id is given again that Inventory knows",
      find: "above: await knownOrders()",
      put: "above: undefined",
      by: "test/simulation/restored.test.ts",
    },
    {
      guard: "an order is stored as COMPLETE before its units are sold",
      find: "const doc = await orders.update(id, update(request.orderId, change, request), call);",
      put: `const before = await orders.get(id, call);
      if (change.complete && before) await commitUnits(context, { ...before, id }, call);
      const doc = await orders.update(id, update(request.orderId, change, request), call);`,
    },
    {
      guard: "an order's units are sold when it is answered that it is complete",
      find: "if (change.complete) await commitUnits(context, { ...doc, id }, call);",
      put: "if (change.complete) void commitUnits(context, { ...doc, id }, call).catch(() => {});",
    },
    {
      guard: "an order is stored as CANCELLED before its units are back",
      find: "const cancelled = await orders.update(id, cancel(orderId, condition), call);",
      put: `const before = await orders.get(id, call);
      if (before) await releaseUnits(context, { ...before, id }, call);
      const cancelled = await orders.update(id, cancel(orderId, condition), call);`,
    },
    {
      guard: "an order's units are back when it is answered that it is gone",
      find: "await releaseUnits(context, { ...cancelled, id }, call);",
      put: "void releaseUnits(context, { ...cancelled, id }, call).catch(() => {});",
    },
    {
      guard: "an order that has ended is not shown",
      find: "if (!isVisible(doc)) throw orderNotFound(orderId);",
      put: "if (!doc) throw orderNotFound(orderId);",
    },
    {
      guard: "an order that has ended is not shown among others",
      find: "docs.filter(isVisible).map(orderOf)",
      put: "docs.map(orderOf)",
    },
    {
      guard: "an order that has ended is not listed",
      find: "isVisible(doc) && matches(filters, doc)",
      put: "matches(filters, doc)",
    },
    {
      guard: "a reservation of no order ends",
      find: "const doc = found.get(reservation.orderId) ?? (await orders.update(id, insertAborted(id), call));",
      put: "const doc = found.get(reservation.orderId);\n        if (!doc) return OrderState.OPEN;",
    },
    {
      guard: "a reservation of no order ends when it is stored that none will come of it",
      find: "const doc = found.get(reservation.orderId) ?? (await orders.update(id, insertAborted(id), call));",
      put: "const doc = found.get(reservation.orderId);\n        if (!doc) return OrderState.ENDED;",
    },
    {
      guard: "an order that can't be read is not said to have ended",
      find: "result.value : OrderState.UNSPECIFIED",
      put: "result.value : OrderState.ENDED",
      by: "tests",
    },
    {
      guard: "an order that can't be read does not keep the units of others",
      find: "if (failed && states.every((state) => state === OrderState.UNSPECIFIED))",
      put: "if (failed)",
      by: "tests",
    },
    {
      guard: "units that were reserved at another pet go back",
      find: "doc.petId !== Number(petId) || doc.tag !== tag",
      put: "doc.tag !== tag",
      by: "tests",
    },
    {
      guard: "units that were reserved under another tag go back",
      find: "doc.petId !== Number(petId) || doc.tag !== tag",
      put: "doc.petId !== Number(petId)",
      by: "tests",
    },
    {
      guard: "Inventory learns that an order is complete",
      find: 'doc.state === "COMPLETE" ? OrderState.COMPLETE : OrderState.OPEN',
      put: "OrderState.OPEN",
    },
  ],
};

export const order: readonly Guarded[] = [rules, saga, handlers];
