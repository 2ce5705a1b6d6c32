import type { Guarded } from "../mutant.ts";

export const outbox: Guarded = {
  file: "services/inventory/outbox-publisher.ts",
  mutants: [
    {
      guard: "an entry that is changed tells the highest order that it knows",
      find: "if (result.entry) highestOrder.note(result.entry);",
      put: "",
      by: "tests",
    },
    {
      guard: "Pet has stored a status before it leaves the outbox",
      find: "const { petId, kept } = await pets.applyStatuses({ statuses }, outgoing(clock, callContext));",
      put: `for (const { _id, statusRev } of due) remember(_id, statusRev);
    const { petId, kept } = await pets.applyStatuses({ statuses }, outgoing(clock, callContext));`,
    },
    {
      guard: "only what Pet has stored leaves the outbox",
      find: "if (applied.has(_id)) remember(_id, statusRev);",
      put: "remember(_id, statusRev);",
    },
    {
      guard: "what Pet has stored leaves the outbox",
      find: "if (applied.has(_id)) remember(_id, statusRev);",
      put: "",
    },
    {
      guard: "the worker takes out of the outbox what Pet has stored",
      find: "await entries.update(entry._id, markPublished(published.get(entry._id)), callContext);",
      put: "",
    },
    {
      guard: "a status that Pet has stored is not sent again",
      find: "if (published.get(_id) === statusRev) return;",
      put: "",
      by: "tests",
    },
    {
      guard: "what is remembered of published statuses is bounded",
      find: "if (published.size <= MAX_PUBLISHED) return;",
      put: "return;",
      by: "tests",
    },
    {
      guard: "an entry learns that its pet keeps another status",
      find: "await entries.update(Number(petId), decide, callContext);",
      put: "void decide;",
      by: "tests",
    },
    {
      guard: "a status that is under way is not sent again",
      find: "if (sent && sent.newest.statusRev >= statusRev) return sent.end.promise;",
      put: "",
      by: "tests",
    },
    {
      guard: "of what waits the newest is sent",
      find: "if (known && known.newest.statusRev >= statusRev) return known.end.promise;",
      put: "if (known) return known.end.promise;",
      by: "tests",
    },
    {
      guard: "what waits does not become older",
      find: "if (known && known.newest.statusRev >= statusRev) return known.end.promise;",
      put: "",
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
