/** The frame around every view. */
import { useEffect, useRef } from "preact/hooks";
import { Events, Rail } from "./live/event-list.tsx";
import { denied, type LiveState, liveState } from "./live/state.ts";
import { heard, notices } from "./notices.ts";
import type { Kind } from "./records/changes.ts";
import { Requests } from "./requests/requests.tsx";
import { hrefOf, route, type View, views } from "./route.ts";
import { credential, isAsked, isUnknown, sessions, signOut } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { Categories } from "./views/categories.tsx";
import { Inventory } from "./views/inventory.tsx";
import { Orders } from "./views/orders.tsx";
import { Pets } from "./views/pets.tsx";

interface Page {
  readonly title: string;
  readonly Body: () => preact.JSX.Element;
  /** The records that it needs. */
  readonly shows?: Kind;
}

const pages: Readonly<Record<View, Page>> = {
  pets: { title: "Pets", Body: Pets, shows: "pet" },
  categories: { title: "Categories", Body: Categories, shows: "category" },
  orders: { title: "Orders", Body: Orders, shows: "order" },
  inventory: { title: "Inventory", Body: Inventory, shows: "inventory" },
  events: { title: "Events", Body: Events },
  requests: { title: "Requests", Body: Requests },
};

export function Shell() {
  const { view } = route.value;
  const { title, Body } = pages[view];
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Petstore`;
    // People who use the keyboard continue at the beginning of the new view.
    if (!isFirst.current) main.current?.querySelector("h1")?.focus();
    isFirst.current = false;
  }, [title]);
  const hasRail = view !== "events" && liveState.value !== "refused";
  useEffect(() => void document.getElementById("console")?.classList.toggle("with-rail", hasRail), [hasRail]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <nav class="side" aria-label="Views">
        <div class="brand">
          <img src={document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href} alt="" />
          Petstore
        </div>
        <ul>
          {views.map((each) => (
            <li key={each}>
              <a href={hrefOf(each)} aria-current={each === view ? "page" : undefined}>
                {pages[each].title}
                {denied.value.some((kind) => kind === pages[each].shows) && <small> no access</small>}
              </a>
            </li>
          ))}
        </ul>
        <footer class="standing">
          <Live />
          {isUnknown.value && !credential.value && (
            <button
              key="in"
              type="button"
              onClick={() => {
                isAsked.value = true;
              }}
            >
              Sign in
            </button>
          )}
          {credential.value && (
            <button key="out" type="button" onClick={signOut}>
              Sign out
            </button>
          )}
        </footer>
      </nav>
      <main ref={main} tabIndex={-1}>
        {/* A new caller gets a new page, without the previous caller's lists and drafts. */}
        <Body key={`${sessions.value} ${view}`} />
      </main>
      {hasRail && <Rail />}
      <p class="unseen" role="status">
        {heard.value}
      </p>
      <div class="notices" role="status">
        {notices.value.map(({ number, text }) => (
          <p key={number}>{text}</p>
        ))}
      </div>
      {isAsked.value && <SignIn />}
    </>
  );
}

const states: Readonly<Record<LiveState, string>> = {
  connecting: "Connecting…",
  live: "Live",
  reconnecting: "Reconnecting…",
  offline: "Offline: no answer",
  resting: "Paused",
  refused: "Not live",
};

function Live() {
  const state = liveState.value;
  return (
    <p class={`live ${state === "live" ? "live-now" : state}`} role="status">
      {states[state]}
    </p>
  );
}
