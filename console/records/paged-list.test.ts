import type { Category } from "@petstore/client";
import { afterEach, expect, test, vi } from "vitest";
import { liveState } from "../live/state.ts";
import { createPagedList } from "./paged-list.ts";

afterEach(() => {
  liveState.value = "connecting";
});

test("a list that could not be read while the petstore was away is read once it is back", async () => {
  const answers = [Promise.reject(new Error("away")), Promise.resolve({ items: [{ id: 1n }], nextPageToken: "" })];
  const read = vi.fn(() => answers.shift() as never);
  const list = createPagedList<"category">({
    kind: "category",
    read,
    idOf: ({ id }: Category) => id,
    etagOf: ({ etag }: Category) => etag,
    matches: () => true,
    isAscending: false,
  });
  await vi.waitUntil(() => list.error.value, { timeout: 50_000 });
  liveState.value = "reconnecting";
  expect(read).toHaveBeenCalledTimes(1);
  liveState.value = "live";
  await vi.waitUntil(() => list.listing.value, { timeout: 50_000 });
  expect(list.listing.value?.items).toEqual([{ id: 1n }]);
  expect(list.error.value).toBe(undefined);
  liveState.value = "reconnecting";
  liveState.value = "live";
  expect(read).toHaveBeenCalledTimes(2);
  list.close();
});
