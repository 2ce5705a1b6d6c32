/**
 * The view and its filters, kept in the fragment of the address: `#/pets?status=pending`. So a filtered view can be
 * bookmarked.
 */
import { computed, signal } from "@preact/signals";

export const views = ["pets", "categories", "orders", "inventory", "events", "requests"] as const;
export type View = (typeof views)[number];

export interface Route {
  readonly view: View;
  readonly query: URLSearchParams;
}

export function routeOf(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const view = views.find((each) => each === path) ?? "pets";
  return { view, query: new URLSearchParams(query) };
}

export const hrefOf = (view: View, query: Readonly<Record<string, string>> = {}): string => {
  const set = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  return `#/${view}${set.size > 0 ? `?${set}` : ""}`;
};

const fragment = signal(location.hash);
addEventListener("hashchange", () => {
  fragment.value = location.hash;
});

export const route = computed(() => routeOf(fragment.value));

/** Sets one filter, or removes it if the value is "". The history gets no new entry. */
export function setQuery(name: string, value: string): void {
  const { view, query } = route.value;
  history.replaceState(null, "", hrefOf(view, { ...Object.fromEntries(query), [name]: value }));
  fragment.value = location.hash;
}
