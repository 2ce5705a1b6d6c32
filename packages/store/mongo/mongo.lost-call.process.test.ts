/** The driver loses a call whose connection is closed just before it writes to it: then it waits for ever. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { realTime } from "@petstore/runtime/clock";
import { expect, test } from "vitest";
import { mongodMissing, startReplicaSet } from "../../../test/harness/mongod.ts";
import { openForTest } from "../fixtures/mongo.ts";
import { type CallOptions, type Collection, type Doc, put, type Store, schema } from "../port.ts";

interface Counter extends Doc {
  readonly count: number;
}
const COUNTERS = schema<Counter>()("counters", {});
type Counters = Collection<Counter, typeof COUNTERS.indexes>;

const add = (at: Counters, id: number, options: CallOptions = {}) =>
  at.update(id, (doc, rev) => put({ _id: id, count: (doc?.count ?? 0) + 1 }, rev), options);

test.skipIf(mongodMissing)("a call that the driver loses is made again", { timeout: 120_000 }, async () => {
  await using set = await startReplicaSet();
  await using stack = new AsyncDisposableStack();
  const open = async () => {
    const store = await openForTest(set.uri, "lost");
    stack.defer(() => store.close());
    return { store, at: await store.collection(COUNTERS) };
  };
  let losing: string | undefined;
  const lost: string[] = [];
  const watch = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    // To connect puts the original back.
    socket.once("connect", () => {
      const write = socket.write.bind(socket) as (data: Buffer) => boolean;
      socket.write = (data: string | Uint8Array) => {
        const bytes = Buffer.from(data as Uint8Array);
        if (losing && bytes.includes(`\x02${losing}\0`)) {
          lost.push(losing);
          losing = undefined;
          socket.destroy();
        }
        return write(bytes);
      };
    });
  };
  subscribe("net.client.socket", watch);
  try {
    /** In stores of their own, so that they wait at the same time. */
    const losingOne = async (command: string, call: (store: Store, at: Counters) => Promise<unknown>) => {
      const { store, at } = await open();
      losing = command;
      const answer = call(store, at);
      while (losing) await new Promise((resolve) => setImmediate(resolve));
      return { answer };
    };
    const patient = { deadline: realTime.clock() + 100_000 };
    const { at: counters } = await open();
    await add(counters, 1);
    const answers = [
      await losingOne("find", (_, at) => at.get(1)),
      await losingOne("find", (_, at) => at.list({ limit: 9, order: "asc" })),
      await losingOne("findAndModify", (store) => store.nextId("numbers")),
      await losingOne("insert", (_, at) => add(at, 2, patient)),
      await losingOne("update", (_, at) => add(at, 1, patient)),
    ];
    const [got, listed, number, inserted, changed] = await Promise.all(answers.map(({ answer }) => answer));
    expect(lost).toEqual(["find", "find", "findAndModify", "insert", "update"]);
    expect([got, listed]).toMatchObject([{ count: 1 }, [{ _id: 1 }]]);
    expect([number, inserted, changed]).toEqual([1, 1, 2]);
    expect(await counters.getMany([1, 2])).toMatchObject([{ count: 2 }, { count: 1 }]);
  } finally {
    unsubscribe("net.client.socket", watch);
  }
});
