/** A list that is read page by page and then kept up to date. */
import type { List, Page, PetstoreError } from "@petstore/client";
import { batch, type ReadonlySignal, signal } from "@preact/signals";
import { liveState } from "../live/state.ts";
import { announce } from "../notices.ts";
import { wordsOf } from "../parts/words.tsx";
import { type Kind, type Kinds, listen, type News, whenMissed } from "./changes.ts";
import { applyChange, type Listing, type ListRules } from "./listing.ts";

/** The page that a list begins with. */
export async function firstPage<T>(list: List<T>): Promise<Page<T>> {
  return (await list.pages().next()).value ?? { items: [], nextPageToken: "" };
}

export interface PagedListOptions<K extends Kind> extends ListRules<Kinds[K]> {
  readonly kind: K;
  readonly read: (pageToken: string, signal: AbortSignal) => Promise<Page<Kinds[K]>>;
}

/** Shows that a record has just come or changed: another object each time. */
export interface Mark {
  readonly what: "new" | "changed";
}

export interface PagedList<T> extends Pick<ListRules<T>, "idOf"> {
  readonly listing: ReadonlySignal<Listing<T> | undefined>;
  readonly marks: ReadonlySignal<ReadonlyMap<number, Mark>>;
  readonly isLoading: ReadonlySignal<boolean>;
  readonly error: ReadonlySignal<PetstoreError | undefined>;
  /** Reads the first page again and drops the others. */
  refresh(): Promise<void>;
  /** Reads the next page. */
  more(): Promise<void>;
  close(): void;
}

/** How many records events may add to a list before it is reduced to its first page again. */
export const MAX_NEWCOMERS = 300;

export function createPagedList<K extends Kind>(options: PagedListOptions<K>): PagedList<Kinds[K]> {
  type T = Kinds[K];
  const { kind, read, idOf } = options;
  const listing = signal<Listing<T> | undefined>(undefined);
  const marks = signal<ReadonlyMap<number, Mark>>(new Map());
  const isLoading = signal(false);
  const error = signal<PetstoreError | undefined>(undefined);
  let nextPageToken = "";
  /** Pages that have been asked for. */
  let pages = 1;
  let reading = new AbortController();
  /** Changes since the page was requested: it is unknown whether the page includes them. */
  let meanwhile: News<K>[] = [];
  /** Number of records after the last read. */
  let size = 0;

  async function load(pageToken: string, before: readonly T[], count = 1): Promise<void> {
    reading.abort();
    const own = new AbortController();
    reading = own;
    meanwhile = [];
    isLoading.value = true;
    try {
      let items = before;
      let next = pageToken;
      for (let i = 0; i < count && (i === 0 || next !== ""); i++) {
        const page = await read(next, own.signal);
        if (own.signal.aborted) return;
        next = page.nextPageToken;
        const known = new Set(page.items.map(idOf));
        items = [...items.filter((item) => !known.has(idOf(item))), ...page.items];
      }
      nextPageToken = next;
      size = items.length;
      const read_ = { items, isWhole: next === "", end: items.at(-1) };
      batch(() => {
        listing.value = meanwhile.reduce<Listing<T>>((all, news) => applyChange(all, news, options), read_);
        if (before.length === 0) marks.value = new Map();
        error.value = undefined;
      });
    } catch (thrown) {
      if (!own.signal.aborted) error.value = thrown as PetstoreError;
    } finally {
      if (reading === own) isLoading.value = false;
    }
  }

  const hear = (news: News) => {
    if (news.kind !== kind) return;
    const own = news as unknown as News<K>;
    if (isLoading.peek()) meanwhile.push(own);
    const before = listing.value;
    if (!before) return;
    const after = applyChange(before, own, options);
    if (after === before) return;
    if (!own.isOwn) announce(`${wordsOf(kind, own.record)}${own.isDeleted ? " was deleted" : ""}`);
    batch(() => {
      listing.value = after;
      const id = idOf(own.record);
      const isNew = !before.items.some((item) => idOf(item) === id);
      const all = new Map(marks.value).set(id, { what: isNew ? "new" : "changed" });
      if (!after.items.some((item) => idOf(item) === id)) all.delete(id);
      marks.value = all;
    });
    if (after.items.length <= size + MAX_NEWCOMERS || isLoading.peek()) return;
    size = after.items.length; // if the refresh fails, it is tried again after as many more
    void refresh();
  };

  const reread = () => load("", [], pages);
  const refresh = () => {
    pages = 1;
    return reread();
  };
  const ends = [
    listen(hear),
    whenMissed(() => void reread()), // the pages that are shown, and one that is on its way
    // Reads again what failed while the petstore was unavailable.
    liveState.subscribe((state) => {
      if (state === "live" && error.peek()) void refresh();
    }),
    () => reading.abort(),
  ];
  void refresh();
  return {
    idOf,
    listing,
    marks,
    isLoading,
    error,
    refresh,
    more() {
      pages++;
      // What is being read may differ from what is shown.
      return isLoading.peek() ? reread() : load(nextPageToken, listing.value?.items ?? []);
    },
    close: () => {
      for (const end of ends) end();
    },
  };
}
