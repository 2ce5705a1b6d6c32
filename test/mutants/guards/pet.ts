import type { Guarded } from "../mutant.ts";

const rules: Guarded = {
  file: "services/pet/rules.ts",
  mutants: [
    {
      guard: "a pet takes no older status",
      find: "stock.statusRev > doc.statusRev ?",
      put: "true ?",
    },
    {
      guard: "a pet is inserted only if its id is absent",
      after: "export const insert =",
      find: "if (doc) return keep(undefined);",
      put: "",
    },
    {
      guard: "a refused pet is written only if its id is absent",
      after: "export const insertAborted =",
      find: "if (doc) return keep(undefined);",
      put: "",
    },
    {
      guard: "only a pet in creation is aborted",
      after: "export const abort:",
      find: 'doc?.state === "CREATING"',
      put: "doc",
    },
    {
      guard: "only a pet in creation is activated",
      after: "export const activate =",
      find: 'doc?.state !== "CREATING"',
      put: "!doc",
    },
    {
      guard: "only an active pet is updated",
      after: "export const beginUpdate =",
      find: 'doc?.state !== "ACTIVE"',
      put: "!doc",
    },
    {
      guard: "an update waits for an unfinished intent",
      after: "export const beginUpdate =",
      find: 'if (doc.intent) return keep({ kind: "busy", op: doc.intent.op, pet: doc });',
      put: "",
    },
    {
      guard: "If-Match is judged in the write of a pet's update",
      after: "export const beginUpdate =",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "a move needs a category that was seen",
      find: 'if (joining !== undefined && category !== "exists") {',
      put: "if (false) {",
    },
    {
      guard: "a category that was seen to be gone refuses the move",
      find: "if (category) throw refusalError(category);",
      put: "if (category) return putIntent(doc, change, joining);",
    },
    {
      guard: "a move and a listing are stored as an intent first",
      find: "if (joining !== undefined || change.listing !== undefined) return",
      put: "if (change.listing !== undefined) return",
    },
    {
      guard: "only an active pet is deleted",
      after: "export const beginDeletion =",
      find: 'doc?.state !== "ACTIVE"',
      put: "!doc",
    },
    {
      guard: "a deletion waits for an unfinished intent",
      after: "export const beginDeletion =",
      find: 'if (doc.intent) return keep({ kind: "busy", op: doc.intent.op, pet: doc });',
      put: "",
    },
    {
      guard: "If-Match is judged in the write of a pet's deletion",
      after: "export const beginDeletion =",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "each intent has a number of its own",
      find: "const op = doc.op + 1;",
      put: "const op = doc.op || 1;",
    },
    {
      guard: "an intent names the category that it joins",
      find: "intent: { ...change, op }, joining, pending: true",
      put: "intent: { ...change, op }, pending: true",
    },
    {
      guard: "an intent is pending, so that a worker finishes it",
      find: "intent: { ...change, op }, joining, pending: true",
      put: "intent: { ...change, op }, joining",
    },
    {
      guard: "an intent is applied once",
      after: "export const applyIntent =",
      find: "if (doc?.intent?.op !== op) return keep(undefined);",
      put: "if (!doc?.intent) return keep(undefined);",
    },
    {
      guard: "a pet that moves is a member of its new category alone",
      after: "export const applyIntent =",
      find: "member: categoryId,",
      put: "",
    },
    {
      guard: "an applied intent leaves its outcome for all who wait for it",
      find: ", last: { op, shown: viewOf(next) } }",
      put: " }",
    },
    {
      guard: "a deletion is applied only while it is the pet's intent",
      after: "export const applyDeletion =",
      find: "doc?.intent?.op === op ?",
      put: "doc ?",
    },
    {
      guard: "an intent is dropped only while it is the pet's intent",
      after: "export const dropIntent =",
      find: "doc?.intent?.op === op ?",
      put: "doc ?",
    },
    {
      guard: "a dropped intent leaves its refusal for all who wait for it",
      find: ", last: { op, refusal } }",
      put: " }",
    },
    {
      guard: "a tombstone takes no status",
      find: 'doc.state === "ABORTED" || doc.state === "DELETED" || newStatus',
      put: "newStatus",
    },
    {
      guard: "a status that is not newer changes nothing",
      find: " || newStatus.status === undefined",
      put: "",
    },
    {
      guard: "a pet that is being deleted takes no status",
      find: 'if (doc.intent?.delete) throw new DomainError("CONCURRENT_UPDATE", "The pet is just being deleted.");',
      put: "",
    },
    {
      guard: "a tombstone is not visible",
      find: "visible: undefined, member: undefined, last",
      put: "member: undefined, last",
    },
    {
      guard: "a tombstone is no member of a category",
      find: "visible: undefined, member: undefined, last",
      put: "visible: undefined, last",
    },
    {
      guard: "a tombstone has no intent",
      find: "const cleared = { ...withoutIntent, ",
      put: "const cleared = { ",
    },
  ],
};

const creation: Guarded = {
  file: "services/pet/create-pet.ts",
  mutants: [
    {
      guard: "a category that is gone refuses before anything is written",
      find: 'if (verdict === "open") return undefined;',
      put: "return undefined;",
    },
    {
      guard: "a category whose deletion is undecided is not said to be gone",
      find: 'return verdict === "deleted" ? "CATEGORY_NOT_FOUND" : "CONCURRENT_UPDATE";',
      put: 'return "CATEGORY_NOT_FOUND";',
    },
    {
      guard: "a key whose pet is written is not decided again",
      find: "if (written) return written;",
      put: "",
    },
    {
      guard: "a pet that was refused stays so",
      find: 'if (doc.state === "ABORTED") return doc.refusal ? refused(refusalError(doc.refusal)) : abandoned;',
      put: "",
    },
    {
      guard: "a pet that is created is not created again",
      find: 'if (doc.state !== "CREATING") return accepted(doc);',
      put: "",
    },
    {
      guard: "a pet looks at the deletion guard when it has claimed its place",
      find: "await deletionGuard.checkAfterClaim(doc.categoryId, call)",
      put: '"open" as string',
    },
    {
      guard: "a creation waits for the end of a deletion",
      find: 'if (verdict === "deleting") throw unfinished();',
      put: "",
    },
    {
      guard: "a pet of a category that is gone is aborted",
      find: 'if (verdict === "deleted") {',
      put: "if (false) {",
    },
  ],
};

const update: Guarded = {
  file: "services/pet/update-pet.ts",
  mutants: [
    {
      guard: "a pet that moves looks at the deletion guard when it has claimed its place",
      find: "if (doc.joining !== undefined) {",
      put: "if (false) {",
    },
    {
      guard: "a move waits for the end of a deletion",
      find: 'if (verdict === "deleting") throw unfinished();',
      put: "",
    },
    {
      guard: "a move to a category that is gone is dropped",
      find: 'if (verdict === "deleted") return apply(dropIntent(op, "CATEGORY_NOT_FOUND"));',
      put: "",
    },
    {
      guard: "a listing that Inventory refuses is dropped",
      find: 'if (outcome === Outcome.INSUFFICIENT_STOCK) return apply(dropIntent(op, "INSUFFICIENT_STOCK"));',
      put: "if (outcome === Outcome.INSUFFICIENT_STOCK) return apply(applyIntent(op, toNumberedStatus(stock)));",
    },
    {
      guard: "an intent is applied when Inventory has taken the listing",
      find: "if (outcome === Outcome.OK) return apply(applyIntent",
      put: "return apply(applyIntent",
    },
    {
      guard: "a pet takes the status that Inventory answers",
      find: "applyIntent(op, toNumberedStatus(stock))",
      put: "applyIntent(op, undefined)",
    },
  ],
};

const deletion: Guarded = {
  file: "services/pet/delete-pet.ts",
  mutants: [
    {
      guard: "a pet with open orders is not deleted",
      find: 'if (outcome === Outcome.OPEN_ORDERS) return apply(dropIntent(op, "PET_HAS_OPEN_ORDERS"));',
      put: "if (outcome === Outcome.OPEN_ORDERS) return apply(applyDeletion(op));",
    },
    {
      guard: "a pet is deleted when its entry is retired",
      find: "if (outcome === Outcome.OK || outcome === Outcome.NOT_FOUND) return",
      put: "return",
    },
    {
      guard: "a pet whose entry is lost can be deleted",
      find: " || outcome === Outcome.NOT_FOUND",
      put: "",
      by: "tests",
    },
    {
      guard: "the entry is retired before the pet is deleted",
      find: "const { outcome } = await inventory.retire({ petId: BigInt(_id), op: BigInt(op) }, outgoing(clock, callContext));",
      put: `await pets.update(_id, documentAfter(applyDeletion(op)), callContext);
  const { outcome } = await inventory.retire({ petId: BigInt(_id), op: BigInt(op) }, outgoing(clock, callContext));`,
    },
  ],
};

const guard: Guarded = {
  file: "services/pet/deletion-guard.ts",
  mutants: [
    {
      guard: "a clock that was set back clears what is remembered of categories",
      find: "if (time < lastTime) seenAt.clear();",
      put: "",
      by: "tests",
    },
    {
      guard: "a category is remembered for less long than its deletion guard is kept",
      find: "now() - (seenAt.get(id) ?? Number.NEGATIVE_INFINITY) < retention.claims.ageMs",
      put: "seenAt.has(id)",
      by: "tests",
    },
    {
      guard: "a closed deletion guard keeps pets out",
      find: 'if (!guard?.closed) return "open";',
      put: 'return "open";',
    },
    {
      guard: "a pet learns that its category is gone",
      after: "async function check(",
      find: 'if (state === CategoryState.DELETED) return "deleted";',
      put: "",
    },
    {
      guard: "a pet opens no deletion guard while the deletion is undecided",
      find: "state === CategoryState.DELETING || op !== guard.op",
      put: "op !== guard.op",
    },
    {
      guard: "a pet opens no deletion guard that another deletion has closed than it has asked about",
      find: "state === CategoryState.DELETING || op !== guard.op",
      put: "state === CategoryState.DELETING",
    },
    {
      guard: "a deletion guard that a crash left closed is opened",
      find: "await open(id, op, callContext);",
      put: "",
      by: "tests",
    },
    {
      guard: "only the deletion that closed the deletion guard opens it",
      find: "guard?.closed && guard.op === op ?",
      put: "guard?.closed ?",
    },
    {
      guard: "a pet that can't be read counts as a member",
      find: "if (error instanceof Corrupt) return true;",
      put: "if (error instanceof Corrupt) return false;",
      by: "tests",
    },
    {
      guard: "a category is not said to have a pet that is seen to be gone",
      find: "if (!first || !isDeletionUnderWay(first) || first._id === failed) return",
      put: "return",
    },
    {
      guard: "a pet whose deletion can't be finished counts as a member",
      find: "first._id === failed) return first !== undefined;",
      put: "first._id === failed) return first !== undefined && first._id !== failed;",
      by: "tests",
    },
    {
      guard: "a pet that is joining counts as a member",
      find: "(await isAny({ joining: id }, callContext)) || (await isAny({ member: id }, callContext))",
      put: "await isAny({ member: id }, callContext)",
    },
    {
      guard: "a pet that has joined counts as a member",
      find: "(await isAny({ joining: id }, callContext)) || (await isAny({ member: id }, callContext))",
      put: "await isAny({ joining: id }, callContext)",
    },
    {
      guard: "joining pets are looked for before members",
      find: "(await isAny({ joining: id }, callContext)) || (await isAny({ member: id }, callContext))",
      put: "(await isAny({ member: id }, callContext)) || (await isAny({ joining: id }, callContext))",
    },
    {
      guard: "a write waits for a deletion that is undecided",
      find: 'if (verdict !== "deleting" || clock() + POLL_INTERVAL_MS > until) return verdict;',
      put: "return verdict;",
      by: "tests",
    },
    {
      guard: "a category of which nothing is known is asked for",
      find: "if (remembers(id) || (await guards.get(id, callContext))) return check(id, callContext);",
      put: "return check(id, callContext);",
    },
    {
      guard: "a category that is asked for and is gone lets nobody in",
      after: "const asked = now();",
      find: 'if ((await stateOf(id, callContext)).state === CategoryState.DELETED) return "deleted";',
      put: "",
    },
    {
      guard: "a deletion closes the deletion guard of a category that had none",
      find: "if (!guard) return put({ _id: id, closed: true, op }, true);",
      put: "if (!guard) return keep(true);",
    },
    {
      guard: "an older deletion does not close the deletion guard",
      find: "return op > guard.op ? put(",
      put: "return op !== guard.op ? put(",
    },
    {
      guard: "a deletion whose deletion guard was opened again does not go on",
      find: "keep(op === guard.op && guard.closed)",
      put: "keep(op === guard.op)",
    },
    {
      guard: "a deletion that is not the latest is told so",
      find: "if (!closed) return Membership.STALE;",
      put: "",
    },
    {
      guard: "the deletion guard is closed before members are looked for",
      find: "const closed = await guards.update(",
      put: "const before = await hasMembers(id, callContext);\n      if (!before) return Membership.NONE;\n      const closed = await guards.update(",
    },
    {
      guard: "a category with members says so",
      find: "(await hasMembers(id, callContext)) ? Membership.SOME : Membership.NONE",
      put: "Membership.NONE",
    },
    {
      guard: "a deletion guard stays while its category is not gone",
      find: 'if ((await check(_id, call)) !== "deleted") return false;',
      put: "",
    },
    {
      guard: "a deletion guard stays while a pet is joining its category",
      find: "if (await hasMembers(_id, call)) return false;",
      put: "",
      by: "tests",
    },
  ],
};

export const pet: readonly Guarded[] = [rules, creation, update, deletion, guard];
