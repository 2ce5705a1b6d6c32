import type { Guarded } from "../mutant.ts";

const rules: Guarded = {
  file: "services/category/rules.ts",
  mutants: [
    {
      guard: "a category that is deleted or aborted is seen by nobody",
      find: 'doc?.state === "ACTIVE" || doc?.state === "DELETING"',
      put: "doc !== undefined",
    },
    {
      guard: "a category that is being deleted is there for callers",
      find: 'doc?.state === "ACTIVE" || doc?.state === "DELETING"',
      put: 'doc?.state === "ACTIVE"',
    },
    {
      guard: "a category is inserted only if its id is absent",
      find: "if (doc) return keep(doc);",
      put: "",
    },
    {
      guard: "only a category that exists is updated",
      after: "export const update =",
      find: "if (!exists(doc)) throw categoryNotFound(id);",
      put: "if (!doc) throw categoryNotFound(id);",
    },
    {
      guard: "an update waits while a deletion is undecided",
      find: 'if (doc.state === "DELETING") return keep("deleting");',
      put: "",
    },
    {
      guard: "If-Match is judged in the write of a category's update",
      after: "export const update =",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "only a category that exists is deleted",
      after: "export const beginDeletion =",
      find: "if (!exists(doc)) throw categoryNotFound(id);",
      put: "if (!doc) throw categoryNotFound(id);",
    },
    {
      guard: "If-Match is judged in the write of a category's deletion",
      after: "export const beginDeletion =",
      find: "checkPreconditions(preconditions, doc.version);",
      put: "",
    },
    {
      guard: "two deletions at the same time are one",
      find: 'if (doc.state === "DELETING") return keep({ op: doc.op, joined: true });',
      put: "",
    },
    {
      guard: "each deletion has a number of its own",
      find: "const op = doc.op + 1;",
      put: "const op = doc.op || 1;",
    },
    {
      guard: "a deletion is pending, so that a worker finishes it",
      find: 'state: "DELETING", op, pending: true }',
      put: 'state: "DELETING", op }',
    },
    {
      guard: "only a deletion under way is ended",
      find: 'doc?.state !== "DELETING" || doc.op !== op',
      put: "!doc || doc.op !== op",
    },
    {
      guard: "a deletion is ended by what was found for it, and not for an earlier one",
      find: 'doc?.state !== "DELETING" || doc.op !== op',
      put: 'doc?.state !== "DELETING"',
    },
    {
      guard: "a deletion under way keeps its number, whatever Pet has seen",
      find: 'doc?.state !== "ACTIVE" || doc.op >= known',
      put: "!doc || doc.op >= known",
      by: "tests",
    },
    {
      guard: "the number of the latest deletion never falls",
      find: 'doc?.state !== "ACTIVE" || doc.op >= known',
      put: 'doc?.state !== "ACTIVE"',
      by: "tests",
    },
    {
      guard: "only a deletion under way gets another number",
      find: 'doc?.state === "DELETING" && doc.op === op && latest >= op',
      put: "doc?.op === op && latest >= op",
      by: "tests",
    },
    {
      guard: "only the deletion that its guard has called old gets another number",
      find: 'doc?.state === "DELETING" && doc.op === op && latest >= op',
      put: 'doc?.state === "DELETING" && latest >= op',
      by: "tests",
    },
    {
      guard: "a deletion that is later than what its guard knows keeps its number",
      find: 'doc?.state === "DELETING" && doc.op === op && latest >= op',
      put: 'doc?.state === "DELETING" && doc.op === op',
      by: "tests",
    },
  ],
};

const deletion: Guarded = {
  file: "services/category/delete-category.ts",
  mutants: [
    {
      guard: "a deletion that has ended is not carried out again",
      find: 'if (doc?.state !== "DELETING") return;',
      put: "if (!doc) return;",
    },
    {
      guard: "a category with members is not deleted",
      find: "if (membership === Membership.NONE) await",
      put: "if (membership !== Membership.STALE) await",
    },
    {
      guard: "a deletion that is not the latest decides nothing",
      find: "if (membership !== Membership.SOME) return;",
      put: "if (membership === Membership.NONE) return;",
    },
    {
      guard: "a deletion that its guard calls old gets a higher number",
      find: "if (membership === Membership.STALE && (await",
      put: "if (false && (await",
      by: "test/simulation/restored.test.ts",
    },
    {
      guard: "only the deletion that made the category active again opens its deletion guard",
      find: "if (steppedBack) await",
      put: "await",
    },
    {
      guard: "the category is active again before its deletion guard is opened",
      find: `const steppedBack = await categories.update(id, endDeletion(op, "ACTIVE"), call);
  await failpoint("category.active-again");
  if (steppedBack) await pets.openCategory(deletion, outgoing(clock, call));`,
      put: `await pets.openCategory(deletion, outgoing(clock, call));
  await failpoint("category.active-again");
  await categories.update(id, endDeletion(op, "ACTIVE"), call);`,
    },
  ],
};

const handlers: Guarded = {
  file: "services/category/handlers.ts",
  mutants: [
    {
      guard: "a category that was restored learns of its latest deletion",
      find: "if (doc && doc.op < knownOp) doc = await categories.update(doc._id, knowDeletion(Number(knownOp)), call);",
      put: "",
      by: "test/simulation/restored.test.ts",
    },
  ],
};

export const category: readonly Guarded[] = [rules, deletion, handlers];
