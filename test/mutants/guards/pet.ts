import type { Guarded } from "../mutant.ts";
import { deletionGuard } from "./deletion-guard.ts";

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
      find: 'if (doc.state === "ABORTED" || doc.state === "DELETED") return keep(undefined);',
      put: "",
    },
    {
      guard: "a status that is not newer changes nothing",
      find: "if (newStatus.status === undefined) {",
      put: "if (false) {",
    },
    {
      guard: "a pet says which other status it keeps",
      find: "keep(isOther ? { status: doc.status, statusRev: doc.statusRev } : undefined)",
      put: "keep(undefined)",
      by: "tests",
    },
    {
      guard: "a pet that keeps another status of the same number says so",
      find: "doc.statusRev > stock.statusRev || doc.status !== stock.status",
      put: "doc.statusRev > stock.statusRev",
      by: "tests",
    },
    {
      guard: "only the intent that Inventory has called old gets another number",
      find: "doc?.intent?.op === op && latest >= op",
      put: "doc?.intent && latest >= op",
      by: "tests",
    },
    {
      guard: "an intent that is later than what Inventory knows keeps its number",
      find: "doc?.intent?.op === op && latest >= op",
      put: "doc?.intent?.op === op",
      by: "tests",
    },
    {
      guard: "the next intent is later than one that got another number",
      find: "{ ...doc, op: latest + 1, intent:",
      put: "{ ...doc, intent:",
      by: "tests",
    },
    {
      guard: "a pet that is being deleted takes no status",
      find: 'if (doc.intent?.delete) throw new DomainError("CONCURRENT_UPDATE", "The pet is just being deleted.");',
      put: "",
    },
    {
      guard: "a tombstone is not visible",
      find: "visible: undefined, member: undefined }",
      put: "member: undefined }",
    },
    {
      guard: "a tombstone is no member of a category",
      find: "visible: undefined, member: undefined }",
      put: "visible: undefined }",
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
      guard: "a pet that was refused stays so",
      find: 'if (doc.state === "ABORTED") return refused(refusalError("CATEGORY_NOT_FOUND"));',
      put: "",
    },
    {
      guard: "a pet that is created is not created again",
      find: 'if (doc.state !== "CREATING") return accepted(doc);',
      put: "",
    },
    {
      guard: "a pet looks at the deletion guard when it has claimed its place",
      find: "await deletionGuard.check(doc.categoryId, call)",
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

const change: Guarded = {
  file: "services/pet/change-pet.ts",
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
    {
      guard: "Inventory learns the number of the status that the pet has",
      find: "knownStatusRev: BigInt(doc.statusRev)",
      put: "knownStatusRev: 0n",
      by: "test/simulation/restored.test.ts",
    },
    {
      guard: "a listing that Inventory calls old gets a higher number",
      find: "const now = await apply(renumberIntent(op, Number(latestOp)));",
      put: "const now = await pets.get(id, callContext);",
      by: "test/simulation/restored.test.ts",
    },
    {
      guard: "an entry that is lost is opened again",
      find: "if (now?.intent?.op === op && outcome === Outcome.NOT_FOUND)",
      put: "if (false)",
      by: "test/simulation/restored.test.ts",
    },
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
      find: "const { outcome, latestOp } = await inventory.retire(",
      put: `await pets.update(_id, documentAfter(applyDeletion(op)), callContext);
  const { outcome, latestOp } = await inventory.retire(`,
    },
    {
      guard: "a deletion that Inventory calls old gets a higher number",
      find: "return apply(renumberIntent(op, Number(latestOp)));",
      put: "return pets.get(_id, callContext);",
      by: "test/simulation/restored.test.ts",
    },
  ],
};

const handlers: Guarded = {
  file: "services/pet/handlers.ts",
  mutants: [
    {
      guard: "a key whose pet is written is not decided again",
      find: "stored ?? (await writePet(context, { id, params, isKeyed }, call))",
      put: "await writePet(context, { id, params, isKeyed }, call)",
    },
  ],
};

export const pet: readonly Guarded[] = [rules, creation, change, deletionGuard, handlers];
