/** The frame around every view. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Events, Rail } from "./live/event-list.tsx";
import { denied, type LiveState, liveState } from "./live/state.ts";
import { heard, notices } from "./notices.ts";
import { Dialog } from "./parts/dialog.tsx";
import { Field } from "./parts/form.tsx";
import type { Kind } from "./records/changes.ts";
import { Requests } from "./requests/requests.tsx";
import { hrefOf, route, type View, views } from "./route.ts";
import { credential, isAsked, isUnknown, sessions, signIn, signOut, stayUnknown } from "./session.ts";
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

const spec = {
  name: "credential",
  label: "API key or access token",
  kind: "secret",
  hint: "Kept while this tab is open, and sent to this petstore alone.",
} as const;

/** Asks for an API key or a token, if the petstore requires one. */
function SignIn() {
  const text = useSignal("");
  const error = useSignal<string | undefined>(undefined);
  const type = (value: string) => {
    text.value = value;
  };
  const send = (event: Event) => {
    event.preventDefault();
    // A header can't carry other characters.
    if (/^[!-~]+$/.test(text.value.trim())) signIn(text.value.trim());
    else error.value = "Enter an API key or a token; neither has spaces.";
  };
  return (
    <Dialog title="Sign in" onClose={stayUnknown}>
      <form noValidate onSubmit={send}>
        <p>
          {credential.value
            ? "What you signed in with is not valid here, or not any more."
            : "This petstore wants to know who you are."}
        </p>
        <Field spec={spec} value={text.value} error={error.value} onInput={type} />
        <footer>
          <button type="submit" class="primary">
            Sign in
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
