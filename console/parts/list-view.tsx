/** A list as a table that highlights new and changed rows. */
import type { Category, List, Pet, PetstoreError } from "@petstore/client";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { liveState } from "../live/state.ts";
import type { Kind, Kinds } from "../records/changes.ts";
import { beginsWith, byId, byName } from "../records/listing.ts";
import { createPagedList, firstPage, type Mark, type PagedList, type PagedListOptions } from "../records/paged-list.ts";
import { hrefOf, route } from "../route.ts";
import { signOut } from "../session.ts";
import { Problem, type ProblemProps } from "./dialog.tsx";
import { dropDrafts } from "./filters.tsx";

/** Records on a page. */
const PAGE_SIZE = 25;

interface PageRequest {
  readonly limit: number;
  readonly pageToken: string;
  readonly orderBy?: string;
  readonly name?: string;
}

interface Source<K extends Kind> extends Pick<PagedListOptions<K>, "kind" | "matches"> {
  /** The field that identifies the records, by which they are in order. */
  readonly key: "id" | "petId";
  readonly list: (page: PageRequest, options: { readonly signal: AbortSignal }) => List<Kinds[K]>;
}

const isNamed = (kind: Kind): boolean => kind === "pet" || kind === "category";

/** A list that lives as long as the view is shown, or until the filters in the page's address change. */
export function usePagedList<K extends Kind>(sourceOf: (query: URLSearchParams) => Source<K>): PagedList<Kinds[K]> {
  const { query } = route.value;
  const list = useMemo(() => {
    const { kind, key, matches, list } = sourceOf(query);
    const idOf = (record: Kinds[K]) => (record as Kinds[K] & Record<typeof key, number>)[key];
    const isAscending = query.get("sort") === "oldest";
    const name = (isNamed(kind) && query.get("name")) || "";
    // What is found by name comes in the order of names.
    const page = { limit: PAGE_SIZE, ...(name !== "" ? { name } : isAscending && { orderBy: key }) };
    const begins = beginsWith(name);
    return createPagedList<K>({
      kind,
      idOf,
      matches: name === "" ? matches : (record) => matches(record) && begins(record as Pet | Category),
      compare: name === "" ? byId(idOf, isAscending) : (byName as PagedListOptions<K>["compare"]),
      read: (pageToken, signal) => firstPage(list({ ...page, pageToken }, { signal })),
    });
  }, [`${query}`]);
  useEffect(() => () => list.close(), [list]);
  return list;
}

export interface Column<T> {
  readonly label: string;
  readonly cell: (record: T) => ComponentChildren;
  /** Whether the cell is the header of its row. */
  readonly isHead?: boolean;
  readonly isNumber?: boolean;
}

/** The dialog that is open over a list, if one is. */
export function useDialog() {
  const [dialog, show] = useState<ComponentChildren>();
  return { dialog, show, onClose: () => show(undefined) };
}

interface ListViewProps<T> {
  readonly title: string;
  readonly intro: ComponentChildren;
  readonly list: PagedList<T>;
  readonly columns: readonly Column<T>[];
  readonly actions: (record: T) => ComponentChildren;
  readonly filters: ComponentChildren;
  readonly create?: { readonly label: string; readonly onClick: () => void };
  readonly empty: Empty;
  readonly dialog: ComponentChildren;
}

/** What stands in place of an empty list. */
interface Empty {
  /** Without filters: what there would be. */
  readonly all: string;
  /** With filters. */
  readonly filtered: string;
  /** Without filters: what to do next. */
  readonly step: ComponentChildren;
}

export function ListView<T>({
  title,
  intro,
  list,
  columns,
  actions,
  filters,
  create,
  empty,
  dialog,
}: ListViewProps<T>) {
  const { view, query } = route.value;
  const { idOf } = list;
  const listing = list.listing.value;
  const isLoading = list.isLoading.value;
  const error = list.error.value;
  // The rows of the list before stay until there are others.
  const last = useRef(list);
  if (listing || error) last.current = list;
  const items = last.current.listing.value?.items ?? [];
  const isWhole = listing?.isWhole === true;
  const isEmpty = isWhole && items.length === 0 && !error;
  const isFiltered = [...query.keys()].some((name) => name !== "sort");
  const count = listing ? `${items.length}${isWhole ? "" : "+"} shown` : error ? "" : "Reading…";
  return (
    <>
      <header class="head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          <p class="quiet intro">{intro}</p>
        </div>
        {create && (
          <button type="button" class="primary" onClick={create.onClick}>
            {create.label}
          </button>
        )}
      </header>
      <div class="tools">
        {filters}
        {!["live", "connecting"].includes(liveState.value) && (
          <button type="button" onClick={() => void list.refresh()}>
            Refresh
          </button>
        )}
      </div>
      {error && <Problem error={error} act={wayOut(error, () => void list.refresh())} />}
      {items.length > 0 && (
        <table aria-busy={isLoading}>
          <caption class="unseen">{title}</caption>
          <thead>
            <tr>
              {columns.map(({ label, isNumber }) => (
                <th key={label} scope="col" class={isNumber ? "number" : undefined}>
                  {label}
                </th>
              ))}
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {items.map((record) => (
              <Row
                key={`${idOf(record)}`}
                {...{ record, columns, actions }}
                mark={last.current.marks.value.get(idOf(record))}
                id={idOf(record)}
              />
            ))}
          </tbody>
        </table>
      )}
      <div class={isEmpty ? "empty" : "pager"}>
        <p class="quiet" role="status">
          {isEmpty ? (isFiltered ? empty.filtered : empty.all) : count}
        </p>
        {isEmpty && (
          <p class="steps">
            {isFiltered ? (
              <a class="button" href={hrefOf(view)} onClick={showAll}>
                Show all
              </a>
            ) : (
              empty.step
            )}
          </p>
        )}
        {listing && !isWhole && (
          <button type="button" onClick={() => void list.more()}>
            More
          </button>
        )}
      </div>
      {dialog}
    </>
  );
}

/** The link goes with what it stands in. */
function showAll(): void {
  dropDrafts();
  document.querySelector("h1")?.focus();
}

function wayOut({ code }: PetstoreError, retry: () => void): ProblemProps["act"] {
  // Trying again with the same credential would not help.
  if (code === "PERMISSION_DENIED") return { label: "Sign in with another credential", onClick: signOut };
  // Trying again without a valid credential opens the sign-in dialog.
  return { label: code === "UNAUTHENTICATED" ? "Sign in" : "Try again", onClick: retry };
}

interface RowProps<T> {
  readonly id: number;
  readonly record: T;
  readonly columns: readonly Column<T>[];
  readonly actions: (record: T) => ComponentChildren;
  readonly mark: Mark | undefined;
}

/** A row lights up when its record has just come or changed. */
const TINTS = { new: "var(--green-tint)", changed: "var(--accent-tint)" } as const;

function Row<T>({ id, record, columns, actions, mark }: RowProps<T>) {
  const row = useRef<HTMLTableRowElement>(null);
  // An action may go while it has the focus, such as "Order" once the pet is pending.
  const hadFocus = row.current?.contains(document.activeElement) === true;
  useLayoutEffect(() => {
    if (hadFocus && !row.current?.contains(document.activeElement))
      row.current?.querySelector<HTMLElement>("button, .actions > *")?.focus();
  });
  useEffect(() => {
    const tint = mark && { offset: 0, background: TINTS[mark.what] };
    if (tint) row.current?.animate([tint], { duration: 2_600, easing: "ease-out" });
  }, [mark]);
  return (
    <tr ref={row} data-id={`${id}`}>
      {columns.map(({ label, cell, isHead, isNumber }) =>
        isHead ? (
          <th key={label} scope="row" data-label={label} class={isNumber ? "number" : undefined}>
            {cell(record)}
          </th>
        ) : (
          <td key={label} data-label={label} class={isNumber ? "number" : undefined}>
            {cell(record)}
          </td>
        ),
      )}
      <td class="actions">{actions(record)}</td>
    </tr>
  );
}
