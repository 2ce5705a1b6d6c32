import { setImmediate as tick } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPage } from "./page.ts";
import { FORMAT, type StoredRecord } from "./record.ts";

const doc = (_id: number): StoredRecord => ({ _id, rev: 1, version: 1, visible: true, format: FORMAT });

/** A list of records that can come and go between two pages. */
function shelf(initial: readonly number[]) {
  const present = new Set(initial);
  const read = (request: {
    limit?: number;
    pageToken?: string;
    orderBy?: string;
    ids?: bigint[];
    filter?: unknown[];
  }) =>
    readPage<StoredRecord>(
      { pageToken: "", ...request },
      {
        maxSize: 100,
        filter: request.filter ?? [],
        ids: request.ids ?? [],
        getMany: async (ids) => ids.filter((id) => present.has(id)).map(doc),
        list: async ({ after, limit, order }) => {
          const sorted = [...present].sort((a, b) => (order === "asc" ? a - b : b - a));
          const rest = sorted.filter((id) => after === undefined || (order === "asc" ? id > after : id < after));
          return rest.slice(0, limit).map(doc);
        },
        matches: () => true,
      },
    );
  return { present, read };
}
const ids = ({ docs }: { docs: readonly StoredRecord[] }) => docs.map(({ _id }) => _id);

describe("a page", () => {
  test("is newest first unless asked otherwise", async () => {
    const { read } = shelf([1, 2, 3]);
    expect(ids(await read({}))).toEqual([3, 2, 1]);
    expect(ids(await read({ orderBy: "-id" }))).toEqual([3, 2, 1]);
    expect(ids(await read({ orderBy: "id" }))).toEqual([1, 2, 3]);
  });
  test("has a next one only if there is another record", async () => {
    const { read } = shelf([1, 2, 3]);
    expect((await read({ limit: 3 })).nextPageToken).toBe("");
    expect((await read({ limit: 2 })).nextPageToken).not.toBe("");
  });
  test("never holds more than 100", async () => {
    const { read } = shelf(Array.from({ length: 150 }, (_, i) => i + 1));
    expect((await read({ limit: 2_147_483_647 })).docs).toHaveLength(100);
    expect((await read({})).docs).toHaveLength(100);
  });
  test("by ids: each once, in the order of the list; ids that can't exist are nothing", async () => {
    const { read } = shelf([1, 2, 3]);
    expect(ids(await read({ ids: [2n, 9n, 3n, 2n, 0n, -1n, 2n ** 60n] }))).toEqual([3, 2]);
    const first = await read({ ids: [1n, 2n, 3n], limit: 2 });
    expect(ids(await read({ ids: [3n, 1n, 2n], limit: 2, pageToken: first.nextPageToken }))).toEqual([1]);
  });
});

describe("a token", () => {
  test("is bound to filters and order, not to the limit", async () => {
    const { read } = shelf([1, 2, 3]);
    const { nextPageToken: pageToken } = await read({ limit: 1, filter: ["a"] });
    expect(ids(await read({ limit: 50, filter: ["a"], pageToken }))).toEqual([2, 1]);
    for (const other of [{ filter: ["b"] }, { filter: ["a"], orderBy: "id" }, { filter: ["a"], ids: [1n] }])
      await expect(read({ ...other, pageToken })).rejects.toMatchObject({
        reason: "INVALID_PAGE_TOKEN",
        path: "page_token",
      });
  });
  test("that the list did not give out is refused", async () => {
    const { read } = shelf([1, 2, 3]);
    const { nextPageToken } = await read({ limit: 1 });
    for (const pageToken of [
      "x",
      `${nextPageToken}=`,
      ` ${nextPageToken}`,
      nextPageToken.slice(1),
      "MS5hYWFhYWFhYWFhYWE",
      Buffer.from(`${Buffer.from(nextPageToken, "base64url")}.name`).toString("base64url"),
      "\u0000",
    ])
      await expect(read({ pageToken })).rejects.toMatchObject({ reason: "INVALID_PAGE_TOKEN" });
  });
});

test("what stays is seen exactly once, whatever comes and goes while pages are read", async () => {
  const some = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 40 });
  const changes = fc.array(fc.record({ add: some, remove: some }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(
      some,
      changes,
      fc.integer({ min: 1, max: 7 }),
      fc.constantFrom("id", "-id"),
      async (start, steps, limit, orderBy) => {
        const { present, read } = shelf(start);
        const stayed = new Set(start.filter((id) => !steps.some(({ remove }) => remove.includes(id))));
        const seen: number[] = [];
        let pageToken = "";
        for (let i = 0; ; i++) {
          const page = await read({ limit, pageToken, orderBy });
          seen.push(...ids(page));
          pageToken = page.nextPageToken;
          if (pageToken === "") break;
          for (const id of steps[i]?.remove ?? []) present.delete(id);
          for (const id of steps[i]?.add ?? []) present.add(id);
        }
        expect(new Set(seen).size).toBe(seen.length);
        for (const id of stayed) expect(seen).toContain(id);
      },
    ),
  );
});

test("while records without end are left out, others have their turn", async () => {
  let inOneTurn = 0;
  const list = async ({ after = 0, limit }: { after?: number | undefined; limit: number }) => {
    if (++inOneTurn > 100) throw new Error("no turn of the event loop in a hundred lists");
    return Array.from({ length: after < 10_000 ? limit : 0 }, (_, i) => doc(after + i + 1));
  };
  const source = { maxSize: 10, filter: [], ids: [], getMany: async () => [], list, matches: () => false };
  let isRead = false;
  const page = readPage({ pageToken: "" }, source).finally(() => {
    isRead = true;
  });
  for (; !isRead; await tick()) inOneTurn = 0;
  expect(await page).toEqual({ docs: [], nextPageToken: "" });
});
