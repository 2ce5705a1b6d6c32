/** What MongoDB reads for a list of what begins alike. */
import { MongoClient } from "mongodb";
import { expect, test } from "vitest";
import { mongodbMissing, openPlace } from "../../../test/harness/mongodb.ts";
import { dropDatabase, openForTest } from "../fixtures/mongo.ts";
import { type Doc, put, schema } from "../port.ts";
import { prefixQueryOf } from "./lists.ts";
import { databaseName } from "./mongo.ts";

interface Note extends Doc {
  readonly text: string;
}
const NOTES = schema<Note>()("notes", { text: ["text"] });

interface Stage {
  readonly stage: string;
  readonly inputStage?: Stage;
  readonly inputStages?: readonly Stage[];
}
const stagesOf = ({ stage, inputStage, inputStages = [] }: Stage): string[] => [
  stage,
  ...[...(inputStage ? [inputStage] : []), ...inputStages].flatMap(stagesOf),
];

test.skipIf(mongodbMissing)("a page reads the keys that it returns off the index, and sorts nothing", async () => {
  await using stack = new AsyncDisposableStack();
  const place = await openPlace();
  stack.defer(() => place.stop());
  const store = await openForTest(place.uri, "prefixes");
  stack.defer(async () => void (await dropDatabase(place.uri, "prefixes")));
  stack.defer(() => store.close());
  const notes = await store.collection(NOTES);
  const texts = Array.from({ length: 1_000 }, (_, i) => (i % 2 === 0 ? "rex" : `rex ${i % 7}`));
  await Promise.all(texts.map((text, _id) => notes.update(_id, () => put({ _id, text }, undefined))));

  await using client = new MongoClient(place.uri);
  const collection = client.db(databaseName(place.uri, "prefixes")).collection<{ _id: number | string }>("notes");
  for (const [prefix, after] of [
    ["re", undefined],
    ["rex", { key: "rex", _id: 500 }],
    ["rex", { key: "rex 3", _id: 500 }],
    ["\u{10ffff}", undefined],
  ] as const) {
    const { filter, hint, sort } = prefixQueryOf({ field: "text", prefix, after, limit: 10 });
    const plan = await collection.find(filter).hint(hint).sort(sort).limit(10).explain("executionStats");
    const { totalKeysExamined, totalDocsExamined, nReturned } = plan.executionStats;
    expect(nReturned).toBe(prefix.startsWith("re") ? 10 : 0);
    expect(totalDocsExamined).toBe(nReturned);
    expect(totalKeysExamined).toBeLessThanOrEqual(nReturned + 2);
    expect(stagesOf(plan.queryPlanner.winningPlan).filter((stage) => /COLLSCAN|^SORT$/.test(stage))).toEqual([]);
  }
});
