import { type ClientSession, type MongoClient, Timestamp } from "mongodb";
import { expect, test } from "vitest";
import { openDatabase } from "./database.ts";

const at = (t: number) => new Timestamp({ t, i: 1 });

/** Sessions that know only of times. */
function times() {
  const started: (Timestamp | undefined)[] = [];
  const client = {
    db: () => ({}),
    startSession: ({ causalConsistency }: { causalConsistency: boolean }) => {
      expect(causalConsistency).toBe(true);
      const index = started.push(undefined) - 1;
      return {
        operationTime: undefined,
        advanceOperationTime(time: Timestamp) {
          started[index] = time;
        },
        endSession: async () => {},
      };
    },
  };
  return { started, database: openDatabase(client as unknown as MongoClient, "petstore_pet", () => false) };
}
const until = (time: Timestamp) => async (session: ClientSession) => {
  Object.assign(session, { operationTime: time });
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
