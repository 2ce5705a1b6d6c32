import type { Category } from "@petstore/client";
import { afterEach, expect, test, vi } from "vitest";
import { liveState } from "../live/state.ts";
import { missed, tell } from "./changes.ts";
import { createPagedList, MAX_NEWCOMERS } from "./paged-list.ts";

afterEach(() => {
  liveState.value = "connecting";
});

const listOf = (read: (pageToken: string) => Promise<{ items: Category[]; nextPageToken: string }>) =>
  createPagedList<"category">({
    kind: "category",
    read,
    idOf: ({ id }: Category) => id,
    matches: () => true,
    compare: (one, other) => other.id - one.id,
  });

test("a list that could not be read while the petstore was away is read once it is back", async () => {
  const answers = [Promise.reject(new Error("away")), Promise.resolve({ items: [{ id: 1 }], nextPageToken: "" })];
  const read = vi.fn(() => answers.shift() as never);
  const list = listOf(read);
  await vi.waitUntil(() => list.error.value, { timeout: 50_000 });
  liveState.value = "reconnecting";
  expect(read).toHaveBeenCalledTimes(1);
  liveState.value = "live";
  await vi.waitUntil(() => list.listing.value, { timeout: 50_000 });
  expect(list.listing.value?.items).toEqual([{ id: 1 }]);
  expect(list.error.value).toBe(undefined);
  liveState.value = "reconnecting";
  liveState.value = "live";
  expect(read).toHaveBeenCalledTimes(2);
  list.close();
});

test("what comes to a page without records that has a next one is left to that one", async () => {
  const list = listOf(async () => ({ items: [], nextPageToken: "more" }));
  await vi.waitUntil(() => list.listing.value, { timeout: 50_000 });
  const record = { id: 2, name: "dogs", etag: '"1"' } as Category;
  tell({ kind: "category", record, isDeleted: false, isOwn: true });
  expect(list.listing.value).toMatchObject({ items: [], isWhole: false });
  list.close();
});

test("a list to which many records come is read again, and holds no more than a page and so many", async () => {
  const read = vi.fn(async () => ({ items: [{ id: 1 }] as Category[], nextPageToken: "more" }));
  const list = listOf(read);
  let most = 0;
  for (let i = 0; i < 1000; i++) {
    await vi.waitUntil(() => !list.isLoading.value, { timeout: 50_000, interval: 1 });
    const record = { id: i + 2, name: "dogs", etag: '"1"' } as Category;
    tell({ kind: "category", record, isDeleted: false, isOwn: true } as never);
    most = Math.max(most, list.listing.value?.items.length ?? 0);
  }
  expect(read.mock.calls.length).toBeGreaterThan(2);
  expect(most).toBeLessThanOrEqual(MAX_NEWCOMERS + 2);
  expect(list.marks.value.size).toBeLessThanOrEqual(MAX_NEWCOMERS + 2);
  list.close();
});

test("what may have been missed is read again with all pages, also with one that has just been asked for", async () => {
  const pages: Record<string, { items: Category[]; nextPageToken: string }> = {
    "": { items: [{ id: 3 } as Category], nextPageToken: "second" },
    second: { items: [{ id: 2 } as Category], nextPageToken: "third" },
    third: { items: [{ id: 1 } as Category], nextPageToken: "" },
  };
  const list = listOf(async (pageToken) => pages[pageToken] ?? expect.unreachable());
  const shown = async () => {
    await vi.waitUntil(() => !list.isLoading.value, { timeout: 50_000 });
    return list.listing.value?.items.map(({ id }) => id);
  };
  expect(await shown()).toEqual([3]);
  void list.more();
  missed.value++;
  expect(await shown()).toEqual([3, 2]);
  missed.value++;
  void list.more();
  expect(await shown()).toEqual([3, 2, 1]);
  await list.refresh();
  expect(await shown()).toEqual([3]);
  list.close();
});
