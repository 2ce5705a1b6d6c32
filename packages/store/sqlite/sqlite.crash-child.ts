/**
 * The process that `embedded.crash.test.ts` kills: it writes as fast as it can and prints a line for each answered
 * write. Arguments: the store's file, and the first number that no earlier run has used.
 */

import { realTime } from "@petstore/runtime/clock";
import { print, ROWS, writeOn } from "../fixtures/crash-writer.ts";
import { silent } from "../fixtures/silent.ts";
import { Unavailable } from "../port.ts";
import { openEmbedded } from "./sqlite.ts";

const [path = "", first = "1"] = process.argv.slice(2);

async function run(): Promise<void> {
  // A clock that stands still: on a busy machine a batch would end before all of its writes had begun.
  const deps = { ...realTime, clock: () => 0, log: silent };
  const store = await openEmbedded(path, { ...deps, onFatal: () => print("fatal") });
  for (const doubt of await writeOn(store, Number(first))) {
    if (doubt.status !== "rejected" || !(doubt.reason instanceof Unavailable)) throw new Error("not Unavailable");
    print(`doubted ${Number(doubt.reason.inDoubt)}`);
  }
  const rows = await store.collection(ROWS);
  const later = await rows.get(1).then(
    () => "answered",
    (error: Error) => error.name,
  );
  print(`afterwards ${later}`);
}

await run().catch((error: Error) => print(`refused ${error.name}: ${error.message}`));
