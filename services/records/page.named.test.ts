import { describe, expect, test } from "vitest";
import { foldCase, type NamedRecord, type NameStart } from "./folded-names.ts";
import { readNamedPage, type Source } from "./page.ts";
import { FORMAT } from "./record.ts";

type Doc = NamedRecord & { readonly colour?: string | undefined };

/** Records by their names; the first has the id 1. The colour of every tenth is red. */
function shelf(...names: readonly string[]) {
  const docs = new Map<number, Doc>();
  const set = (_id: number, name: string) =>
    docs.set(_id, {
      ...{ _id, rev: 1, version: 1, visible: true, format: FORMAT, foldedName: foldCase(name) },
      colour: _id % 10 === 0 ? "red" : "blue",
    });
  for (const [i, name] of names.entries()) set(i + 1, name);
  let read = 0;
  const list = async ({ prefix, after, limit }: NameStart): Promise<Doc[]> => {
    const isBeyond = ({ _id, foldedName = "" }: Doc) =>
      !after || foldedName > after.key || (foldedName === after.key && _id > after._id);
    const found = [...docs.values()]
      .filter((doc) => doc.foldedName?.startsWith(prefix) && isBeyond(doc))
      .sort((a, b) =>
        (a.foldedName ?? "") < (b.foldedName ?? "") ? -1 : a.foldedName === b.foldedName ? a._id - b._id : 1,
      )
      .slice(0, limit);
    read += found.length;
    return found;
  };
  interface Asked {
    name: string;
    limit?: number;
    pageToken?: string;
    orderBy?: string;
    ids?: readonly bigint[];
    colour?: string;
    finish?: Source<Doc>["finish"];
  }
  const ask = async ({ ids = [], colour, finish, ...request }: Asked) => {
    const source: Source<Doc> = {
      maxSize: 100,
      filter: [colour],
      ids,
      getMany: () => expect.unreachable(),
      list: () => expect.unreachable(),
      matches: (doc) => colour === undefined || doc.colour === colour,
      ...(finish && { finish }),
    };
    const { docs, nextPageToken } = await readNamedPage({ pageToken: "", ...request }, source, { list }, {} as never);
    return { ids: docs.map(({ _id }) => _id), next: nextPageToken };
  };
  const walk = async (asked: Asked) => {
    const pages: number[][] = [];
    for (let pageToken = ""; ; ) {
      const { ids, next } = await ask({ ...asked, pageToken });
      pages.push(ids);
      pageToken = next;
      if (next === "") return pages;
    }
  };
  return {
    docs,
    set,
    ask,
    walk,
    read: () => {
      const count = read;
      read = 0;
      return count;
    },
  };
}

describe("a page by name", () => {
  test("has the names that begin with the text, letters without case, in the order of names and then of ids", async () => {
    const { ask } = shelf("rex", "Rexona", "max", "REX", "Re", "tyrex");
    expect(await ask({ name: "rEx" })).toEqual({ ids: [1, 4, 2], next: "" });
    expect(await ask({ name: "x" })).toEqual({ ids: [], next: "" });
  });

  test("goes on where the page before has ended, through names that are alike, and has a next one only if there is another", async () => {
    const { walk } = shelf(...Array.from({ length: 7 }, () => "Rex"), "rexa", "Rex");
    expect(await walk({ name: "rex", limit: 3 })).toEqual([
      [1, 2, 3],
      [4, 5, 6],
      [7, 9, 8],
    ]);
    expect(await walk({ name: "rex", limit: 9 })).toEqual([[1, 2, 3, 4, 5, 6, 7, 9, 8]]);
  });

  test("never holds more than 100", async () => {
    const { ask } = shelf(...Array.from({ length: 150 }, () => "Rex"));
    expect((await ask({ name: "rex" })).ids).toHaveLength(100);
    expect((await ask({ name: "rex", limit: 1_000 })).ids).toHaveLength(100);
  });

  test("holds to other filters, and reads no more than a thousand records for it", async () => {
    const { ask, walk, read } = shelf(...Array.from({ length: 2_500 }, () => "Rex"));
    const red = Array.from({ length: 250 }, (_, i) => 10 * (i + 1));
    expect(await ask({ name: "rex", colour: "red", limit: 5 })).toMatchObject({ ids: [10, 20, 30, 40, 50] });
    expect(read()).toBeLessThan(300);
    expect((await walk({ name: "rex", colour: "red" })).map(({ length }) => length)).toEqual([100, 100, 50]);
    expect(await walk({ name: "rex", ids: [1_500n, 9n] })).toEqual([[9], [1_500], []]);
    read();
    const { ids, next } = await ask({ name: "rex", colour: "green" });
    expect([ids, read()]).toEqual([[], 1_000]);
    expect(next).not.toBe("");
    expect((await walk({ name: "rex", colour: "green" })).flat()).toEqual([]);
    expect((await walk({ name: "rex", colour: "red" })).flat()).toEqual(red);
  });

  test("is filled with those that follow when some of its records are just being deleted", async () => {
    const { ask } = shelf(...Array.from({ length: 20 }, () => "Rex"));
    const listed = async (docs: readonly Doc[]) => docs.filter(({ _id }) => _id > 7);
    const page = await ask({ name: "rex", limit: 5, finish: { listed, asked: () => expect.unreachable() } });
    expect(page.ids).toEqual([8, 9, 10, 11, 12]);
    expect(page.next).not.toBe("");
  });

  test("in no other order", async () => {
    await expect(shelf("Rex").ask({ name: "rex", orderBy: "-id" })).rejects.toMatchObject({
      reason: "VALIDATION_FAILED",
      path: "order_by",
    });
  });
});

describe("its token", () => {
  test("is bound to the name, whatever its case, and to the other filters", async () => {
    const { ask } = shelf("Rex", "Rex", "Rexa");
    const { next: pageToken } = await ask({ name: "rex", limit: 1 });
    expect((await ask({ name: "REX", limit: 2, pageToken })).ids).toEqual([2, 3]);
    for (const other of [{ name: "re" }, { name: "rexa" }, { name: "rex", colour: "red" }, { name: "rex", ids: [2n] }])
      await expect(ask({ ...other, pageToken })).rejects.toMatchObject({ reason: "INVALID_PAGE_TOKEN" });
  });

  test("holds names of any letters", async () => {
    const { walk } = shelf("r.1", "r\u{1F600}", "r ", "r\n", "r\u0000");
    expect((await walk({ name: "R", limit: 1 })).flat().sort()).toEqual([1, 2, 3, 4, 5]);
  });

  test("that the list did not give out is refused", async () => {
    const { ask } = shelf("Rex", "Rex", "Rexa");
    const { next } = await ask({ name: "rex", limit: 1 });
    const [id, bound, key] = Buffer.from(next, "base64url").toString().split(".");
    expect(key).toBe("rex");
    for (const parts of [
      [id, bound],
      [id, bound, ""],
      [id, bound, "max"],
      [0, bound, key],
    ]) {
      const pageToken = Buffer.from(parts.join(".")).toString("base64url");
      await expect(ask({ name: "rex", pageToken })).rejects.toMatchObject({ reason: "INVALID_PAGE_TOKEN" });
    }
  });
});
