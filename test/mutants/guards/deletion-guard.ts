import type { Guarded } from "../mutant.ts";

export const deletionGuard: Guarded = {
  file: "services/pet/deletion-guard.ts",
  mutants: [
    {
      guard: "a category is remembered for less long than its deletion guard is kept",
      find: "clock() - (seenAt.get(id) ?? Number.NEGATIVE_INFINITY) < retention.keys.ageMs",
      put: "seenAt.has(id)",
      by: "tests",
    },
    {
      guard: "a closed deletion guard keeps pets out",
      find: 'if (!guard?.closed) return "open";',
      put: 'return "open";',
    },
    {
      guard: "Category learns which deletion the deletion guard knows",
      find: "stateOf(id, callContext, guard.op)",
      put: "stateOf(id, callContext)",
      by: "test/simulation/restored.test.ts",
    },
    {
      guard: "a pet learns that its category is gone",
      after: "async function checkNow(",
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
      find: "if (!guard && !remembers(id)) return ask(id, callContext);",
      put: "",
    },
    {
      guard: "a category that is asked for and is gone lets nobody in",
      after: "const asked = clock();",
      find: 'if ((await stateOf(id, callContext)).state === CategoryState.DELETED) return "deleted";',
      put: "",
    },
    {
      guard: "a deletion closes the deletion guard of a category that had none",
      find: "return put({ ...guard, _id: id, closed: true, op }, { closed: true, latestOp: op });",
      put: `const closed = { closed: true, latestOp: op };
          return guard ? put({ ...guard, _id: id, closed: true, op }, closed) : keep(closed);`,
    },
    {
      guard: "an older deletion does not close the deletion guard",
      find: "if (guard && op <= guard.op)",
      put: "if (guard && op === guard.op)",
    },
    {
      guard: "a deletion whose deletion guard was opened again does not go on",
      find: "closed: op === guard.op && guard.closed",
      put: "closed: op === guard.op",
    },
    {
      guard: "a deletion that is not the latest is told so",
      find: "if (!closed) return { membership: Membership.STALE, latestOp: BigInt(latestOp) };",
      put: "",
    },
    {
      guard: "the deletion guard is closed before members are looked for",
      find: "const { closed, latestOp } = await guards.update(",
      put: `if (!(await hasMembers(id, callContext))) return { membership: Membership.NONE };
      const { closed, latestOp } = await guards.update(`,
    },
    {
      guard: "a category with members says so",
      find: "(await hasMembers(id, callContext)) ? Membership.SOME : Membership.NONE",
      put: "Membership.NONE",
    },
    {
      guard: "a deletion guard stays while its category is not gone",
      find: 'if ((await checkNow(_id, call)) !== "deleted") return false;',
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
