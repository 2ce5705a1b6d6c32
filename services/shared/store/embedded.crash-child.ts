/**
 * The process that `embedded.crash.test.ts` kills: it writes as fast as it can and prints a line for each answered
 * write. Arguments: the store's file, and the first number that no earlier run has used.
 */
import { writeSync } from "node:fs";
import { openEmbedded } from "./embedded.ts";
import { type Doc, put, schema, Unavailable } from "./port.ts";

const [path = "", first = "1"] = process.argv.slice(2);
const print = (line: string) => writeSync(1, `${line}\n`);

async function run(): Promise<void> {
  const store = await openEmbedded(path, { clock: Date.now, onFatal: () => print("fatal") });
  const rows = await store.collection(schema<Doc & { readonly filler: string }>()("rows", { filler: ["filler"] }));
  const counters = await store.collection(schema<Doc & { readonly count: number }>()("counters", {}));
  let id = Number(first);

  const write = async (writer: number) => {
    for (;;) {
      const _id = id++;
      await rows.update(_id, () => put({ _id, filler: `${_id}`.repeat(50) }, 0));
      print(`inserted ${_id}`);
      print(
        `counted ${await counters.update(1, (doc) => put({ _id: 1, count: (doc?.count ?? 0) + 1 }, (doc?.count ?? 0) + 1))}`,
      );
      print(`took ${await store.nextId("rows")}`);
      if (writer > 0) continue;
      print(`removing ${_id}`);
      await rows.remove(_id, 1);
      print(`removed ${_id}`);
    }
  };
  const doubts = await Promise.allSettled(Array.from({ length: 8 }, (_, writer) => write(writer)));
  for (const doubt of doubts) {
    if (doubt.status !== "rejected" || !(doubt.reason instanceof Unavailable)) throw new Error("not Unavailable");
    print(`doubted ${Number(doubt.reason.inDoubt)}`);
  }
  const later = await rows.get(1).then(
    () => "answered",
    (error: Error) => error.name,
  );
  print(`afterwards ${later}`);
}

await run().catch((error: Error) => print(`refused ${error.name}: ${error.message}`));
