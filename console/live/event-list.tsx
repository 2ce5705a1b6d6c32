/** The latest events, as a page of their own and in a rail beside every other page. */
import { useSignal } from "@preact/signals";
import { Chip, wordsOf } from "../parts/words.tsx";
import type { Kind } from "../records/changes.ts";
import { eventsCurl } from "../requests/forms.ts";
import { hrefOf } from "../route.ts";
import { credential } from "../session.ts";
import { denied, kinds, type LiveEvent, liveState, readScopes } from "./state.ts";
import { events, eventsUrl } from "./watch.ts";

/** How many events the rail shows. */
const FEW = 14;

export function Events() {
  const kind = useSignal("");
  const held = useSignal<readonly LiveEvent[] | undefined>(undefined);
  const shown = (held.value ?? events.value).filter((event) => kind.value === "" || event.recordType === kind.value);
  const told = kinds.filter(isTold);
  return (
    <>
      <header class="head">
        <div>
          <h1 tabIndex={-1}>Events</h1>
          <p class="quiet">What happens in the shop, as it happens, whoever does it.</p>
        </div>
        <button
          type="button"
          aria-pressed={held.value !== undefined}
          onClick={() => {
            held.value = held.value ? undefined : events.value;
          }}
        >
          {held.value ? "Go on" : "Hold still"}
        </button>
      </header>
      <div class="tools">
        <search class="filters">
          <label>
            Kind
            <select
              value={kind.value}
              onChange={(event) => {
                kind.value = event.currentTarget.value;
              }}
            >
              <option value="">any</option>
              {told.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        </search>
        {told.length > 0 && (
          <p class="quiet">
            Programs can read the same events, by: <code>{eventsCurl(eventsUrl(told), credential.value !== "")}</code>
          </p>
        )}
      </div>
      <Untold />
      <EventList shown={shown} label="Events, the latest first" />
    </>
  );
}

export function Rail() {
  return (
    <aside class="rail" aria-label="Latest events">
      <h2>
        <a href={hrefOf("events")}>Latest events</a>
      </h2>
      <Untold />
      <EventList shown={events.value.slice(0, FEW)} label="Latest events" />
    </aside>
  );
}

/** The time, with the date if it is not of today. */
const when = (time: Date): string =>
  time.toDateString() === new Date().toDateString() ? time.toLocaleTimeString() : time.toLocaleString();

const isTold = (kind: Kind) => !denied.value.includes(kind);
const plurals: Readonly<Record<Kind, string>> = {
  pet: "pets",
  category: "categories",
  order: "orders",
  inventory: "stock",
};
const list = (words: readonly string[]) => new Intl.ListFormat("en").format(words);

function Untold() {
  const untold = kinds.filter((kind) => !isTold(kind));
  if (untold.length === 0) return null;
  return (
    <p class="quiet untold">
      You may not see {list(untold.map((kind) => plurals[kind]))} (needs {list(untold.map((kind) => readScopes[kind]))}
      ).
    </p>
  );
}

function EventList({ shown, label }: { readonly shown: readonly LiveEvent[]; readonly label: string }) {
  if (shown.length === 0) {
    const isRefused = liveState.value === "refused";
    return (
      <p class="empty">
        {isRefused
          ? "This petstore sends no events, or none to you."
          : "Nothing has happened since this page was opened."}
      </p>
    );
  }
  return (
    <ol class="events" aria-label={label}>
      {shown.map(({ id, recordType, type, time, record }) => (
        <li key={`${recordType} ${id}`} class="event">
          <Chip word={type} />
          <span>{wordsOf(recordType, record)}</span>
          {time && <time dateTime={time}>{when(new Date(time))}</time>}
        </li>
      ))}
    </ol>
  );
}
