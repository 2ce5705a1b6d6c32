import { Binary, type ClientSession, type ClusterTime, Long, type MongoClient, Timestamp } from "mongodb";
import { describe, expect, test } from "vitest";
import { openDatabase } from "./database.ts";

const at = (t: number) => new Timestamp({ t, i: 1 });
/** As a server without authentication signs it. */
const signed = (t: number): ClusterTime => ({
  clusterTime: at(t),
  signature: { hash: new Binary(new Uint8Array(20)), keyId: Long.fromBits(1, 7) },
});

/** Sessions that know only of times. */
function times(...hosts: string[]) {
  const started: (Timestamp | undefined)[] = [];
  const proofs: unknown[] = [];
  const client = {
    options: { hosts },
    db: () => ({}),
    startSession: ({ causalConsistency }: { causalConsistency: boolean }) => {
      expect(causalConsistency).toBe(true);
      const index = started.push(undefined) - 1;
      return {
        operationTime: undefined,
        advanceOperationTime(time: Timestamp) {
          started[index] = time;
        },
        advanceClusterTime: (time: ClusterTime) => void proofs.push(time),
        endSession: async () => {},
      };
    },
  };
  return { started, proofs, database: openDatabase(client as unknown as MongoClient, "petstore_pet", () => false) };
}
const until = (time: Timestamp, clusterTime?: ClusterTime) => async (session: ClientSession) => {
  Object.assign(session, { operationTime: time, clusterTime });
};

test("every call comes after all that the process has seen, also when that ended with an error", async () => {
  const { started, database } = times();
  await database.inSession(until(at(2)));
  await database.inSession(until(at(1)));
  const failing = database.inSession(async (session) => {
    await until(at(3))(session);
    throw new Error("cut");
  });
  await expect(failing).rejects.toThrow("cut");
  await database.inSession(until(at(4)));
  expect(started.map((time) => time?.t)).toEqual([undefined, 2, 2, 3]);
});

describe("what another process has seen", () => {
  const ours = () => times("a:1", "b:2");
  /** What a process tells that has seen this second of these servers. */
  async function toldOf(t: number, { database } = ours()): Promise<string> {
    await database.inSession(until(at(t), signed(t + 1)));
    return database.seen() as string;
  }

  test("is seen by all later calls, and the server is given the proof that there was such a time", async () => {
    const { started, proofs, database } = times("b:2", "a:1");
    database.follow(await toldOf(5));
    await database.inSession(until(at(5)));
    expect(started).toEqual([at(5)]);
    expect(proofs).toEqual([signed(6)]);
    expect(database.seen()).toBe(await toldOf(5));
  });

  test("takes nothing back", async () => {
    const { started, database } = ours();
    await toldOf(7, { ...ours(), database });
    database.follow(await toldOf(5));
    await database.inSession(until(at(7)));
    expect(started).toEqual([undefined, at(7)]);
  });

  test("is nothing where nothing was seen, or where it makes no sense", async () => {
    const { started, database } = ours();
    expect(database.seen()).toBeUndefined();
    for (const text of ["", "x", `${await toldOf(5)}!`, "a:1 b:2", (await toldOf(5)).slice(0, 20)])
      database.follow(text);
    await database.inSession(until(at(1)));
    expect(started).toEqual([undefined]);
  });

  test("of other servers is of no concern, beside that of these it is read", async () => {
    const { started, database } = ours();
    const others = await toldOf(9, times("c:3"));
    database.follow(others);
    database.follow(`${others} ${await toldOf(3)}`);
    await database.inSession(until(at(3)));
    expect(started).toEqual([at(3)]);
  });

  test("can be compared as text", async () => {
    const texts = await Promise.all([9, 10, 11, 0x7fffffff, 0xfffffff0].map((t) => toldOf(t)));
    expect(texts.toSorted()).toEqual(texts);
    expect(new Set(texts).size).toBe(texts.length);
  });
});
