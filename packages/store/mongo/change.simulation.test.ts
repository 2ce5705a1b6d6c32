/** Processes that change the same document and each begin with what they know of it, in every order and with lost answers. */
import { setImmediate as tick } from "node:timers/promises";
import { serialize } from "bson";
import fc from "fast-check";
import { MongoNetworkError } from "mongodb";
import { expect, test } from "vitest";
import type { Fields } from "../document/codec.ts";
import { type Decide, type Doc, keep, put } from "../port.ts";
import { type ChangeOptions, createChanges } from "./change.ts";
import { readStored, type Stored, unchanged } from "./operation-log.ts";
import { knownDocuments } from "./reads.ts";
import type { Written } from "./writes.ts";

interface Stock extends Doc {
  readonly units: number;
}
type Fault = "none" | "lost before" | "lost after";

const take: Decide<Stock, string> = (doc) =>
  doc && doc.units > 0 ? put({ _id: 1, units: doc.units - 1 }, "taken") : keep("none left");
const give: Decide<Stock, string> = (doc) => put({ _id: 1, units: (doc?.units ?? 0) + 1 }, "given");

/** One document, and all the numbers of units that there ever were. */
function server(scheduler: fc.Scheduler, nextFault: () => Fault) {
  const decode = (bytes: Uint8Array) => readStored<Stock>(bytes, { name: "stock" });
  const history = [0];
  let bytes: Uint8Array | undefined;
  const current = () => bytes && decode(bytes);
  const step = <R>(what: string, does: () => R) => scheduler.schedule(Promise.resolve(), what).then(does);

  async function write(base: Stored<Stock> | undefined, fields: Fields): Promise<Written> {
    const fault = nextFault();
    if (fault === "lost before") await step("lost", () => Promise.reject(new MongoNetworkError("cut")));
    const written = await step("write", (): Written => {
      const now = current();
      const isBase = base && now ? JSON.stringify(unchanged(base)) === JSON.stringify(unchanged(now)) : base === now;
      if (!isBase) return "not made";
      bytes = serialize(fields);
      history.push((fields as unknown as Stock).units);
      return "made";
    });
    if (fault === "lost after") throw new MongoNetworkError("cut");
    return written;
  }

  function process(by: string) {
    const known = knownDocuments<Stock>(decode);
    let number = 0;
    const reads = {
      read: () => step("read", () => (bytes ? known.read(bytes) : void known.noteAbsent(1))),
    };
    const { change } = createChanges<Stock>({
      keys: [],
      known,
      reads,
      database: { hasSeveralMembers: () => false },
      openWriter: () => ({ write, end: () => {} }),
      timing: { clock: () => 0, random: () => 0, sleep: () => step("pause", () => {}) },
      nextOperation: () => ({ by, number: ++number }),
    } as unknown as ChangeOptions<Stock>);

    /** Makes one change, and checks that a refusal was true at some time while it was made. */
    async function make(decide: Decide<Stock, string>): Promise<string> {
      const from = history.length - 1;
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      await change(1, [
        {
          decide,
          call: { isOver: false, inDoubt: false, failure: undefined, remaining: () => 1_000 },
          resolve,
          reject,
        },
      ]);
      const result = String(await promise);
      if (result === "none left") expect(history.slice(from)).toContain(0);
      return result;
    }
    return async (work: readonly Decide<Stock, string>[]) => {
      const results: string[] = [];
      for (const decide of work) results.push(await make(decide));
      return results;
    };
  }
  return { process, unitsLeft: () => current()?.doc.units ?? 0 };
}

const work = fc.array(fc.constantFrom(take, give), { minLength: 3, maxLength: 6 });
const fault = fc.constantFrom<Fault>("none", "none", "none", "lost before", "lost after");

test("every change is made once, and no refusal is answered that was never true", { timeout: 60_000 }, () =>
  fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.infiniteStream(fault),
      fc.array(work, { minLength: 2, maxLength: 3 }),
      async (scheduler, faults, works) => {
        const { process, unitsLeft } = server(scheduler, () => faults.next().value);
        let results: string[][] | undefined;
        const all = Promise.all(works.map((work, i) => process(`p${i}`)(work))).then((made) => (results = made));
        while (!results) {
          if (scheduler.count() > 0) await scheduler.waitOne();
          else await Promise.race([tick(), all]);
        }
        const count = (result: string) => results?.flat().filter((one) => one === result).length ?? 0;
        expect(unitsLeft()).toBe(count("given") - count("taken"));
      },
    ),
    { numRuns: 300 },
  ),
);
