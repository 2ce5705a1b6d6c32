/** The filters of a list, and its order. Their values are kept in the address of the page. */
import { PetstoreError } from "@petstore/client";
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedEvent } from "preact";
import { idMeant, labelOf, MAX_NAME } from "../records/names.ts";
import { route, setQuery } from "../route.ts";
import { InvalidInput, integer, sentence } from "./field-errors.ts";
import { OfferInput, useLull } from "./offers.tsx";

const wide = matchMedia("(min-width: 40rem)");
const isWide = signal(wide.matches);
wide.addEventListener("change", () => {
  isWide.value = wide.matches;
});

interface FiltersProps {
  /** Shown also where the others are folded away. */
  readonly search?: ComponentChildren;
  readonly children: ComponentChildren;
}

const resets = signal(0);
/** Drops what was typed into filters and is not applied. */
export function dropDrafts(): void {
  resets.value++;
}

/** On a phone they are folded away, for the list is what counts. */
export function Filters({ search, children }: FiltersProps) {
  const { query } = route.value;
  const count = [...query.keys()].filter((name) => name !== "sort" && name !== "name").length;
  return (
    <search key={resets.value} class="filters">
      {search}
      <details open={isWide.value}>
        <summary>Filters{count > 0 && ` (${count})`}</summary>
        <div>
          {children}
          {!query.has("name") && (
            <Choice name="sort" label="Sort" all="newest first" options={[["oldest", "oldest first"]]} />
          )}
        </div>
      </details>
    </search>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  /** The label of "no filter". */
  readonly all: string;
  readonly options: readonly (readonly [value: string, label: string])[];
}

export function Choice({ name, label, all, options }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={route.value.query.get(name) ?? ""} onChange={(event) => setQuery(name, event.currentTarget.value)}>
        <option value="">{all}</option>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Filters by the beginning of the name, as one types. */
export function NameFilter() {
  const typed = useSignal<string | undefined>(undefined);
  const apply = useLull((text: string) => {
    typed.value = undefined;
    setQuery("name", text);
  });
  return (
    <label>
      Name
      <input
        type="search"
        autocomplete="off"
        placeholder="begins with"
        maxLength={MAX_NAME}
        value={typed.value ?? route.value.query.get("name") ?? ""}
        onInput={({ currentTarget: { value } }) => {
          typed.value = value;
          apply(value);
        }}
      />
    </label>
  );
}

interface IdFilterProps {
  readonly name: string;
  readonly label: string;
  /** What is offered by name, if it is. */
  readonly offered?: "pet" | "category";
}

/** Filters by an identifier. Text that means no record stays as it was typed, until the address changes. */
export function IdFilter({ name, label, offered }: IdFilterProps) {
  const { view, query } = route.value;
  const applied = query.get(name) ?? "";
  const draft = useSignal<{ readonly text: string; readonly beside: string; readonly why: string } | undefined>(
    undefined,
  );
  const type = (text: string, why = "") => {
    draft.value = { text, beside: applied, why };
  };
  const change = async (text: string) => {
    type(text);
    const mine = draft.peek();
    try {
      const isNone = text.trim() === "";
      const id = isNone ? "" : `${offered ? await idMeant(offered, name, text) : integer(name, text)}`;
      if (draft.peek() !== mine || route.peek().view !== view) return; // another text is there by now
      draft.value = undefined;
      setQuery(name, id);
    } catch (thrown) {
      if (!(thrown instanceof InvalidInput || thrown instanceof PetstoreError)) throw thrown;
      if (draft.peek() === mine) type(text, sentence({ name, label }, thrown.message));
    }
  };
  const { text, why = "" } = draft.value?.beside === applied ? draft.value : {};
  const id = idIn(query, name);
  const input = {
    id: `filter-${name}`,
    size: offered ? 14 : 6,
    placeholder: "any",
    value: text ?? (offered && id !== undefined ? labelOf(offered, id) : applied),
    "aria-invalid": why !== "",
    "aria-describedby": why ? `filter-${name}-error` : undefined,
    onChange: (event: TargetedEvent<HTMLInputElement>) => void change(event.currentTarget.value),
  };
  return (
    <div>
      <label for={input.id}>
        {label}
        {offered ? (
          <OfferInput
            {...input}
            offered={offered}
            onText={(text, isOffered) => void (isOffered ? change : type)(text)}
          />
        ) : (
          <input
            {...input}
            inputMode="numeric"
            autocomplete="off"
            onInput={(event) => type(event.currentTarget.value)}
          />
        )}
      </label>
      {/* Inside the label it would become part of the field's name. */}
      {why && (
        <p class="wrong" id={`filter-${name}-error`} role="alert">
          {why}
        </p>
      )}
    </div>
  );
}

/** The identifier that the address filters by. */
export function idIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? "";
  return /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}
