/** The filters of a list, and its order. Their values are kept in the address of the page. */
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { route, setQuery } from "../route.ts";
import { InvalidInput, integer, sentence } from "./field-errors.ts";

const wide = matchMedia("(min-width: 40rem)");
const isWide = signal(wide.matches);
wide.addEventListener("change", () => {
  isWide.value = wide.matches;
});

/** On a phone they are folded away, for the list is what counts. */
export function Filters({ children }: { readonly children: ComponentChildren }) {
  const count = [...route.value.query.keys()].filter((name) => name !== "sort").length;
  return (
    <search class="filters">
      <details open={isWide.value}>
        <summary>Filters{count > 0 && ` (${count})`}</summary>
        <div>
          {children}
          <Choice name="sort" label="Sort" all="newest first" options={[["oldest", "oldest first"]]} />
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

/** Filters by an identifier. Text that is not one stays as it was typed, until the address changes. */
export function IdFilter({ name, label }: { readonly name: string; readonly label: string }) {
  const applied = route.value.query.get(name) ?? "";
  const wrong = useSignal({ text: "", beside: "", why: "" });
  const change = (text: string) => {
    try {
      setQuery(name, text.trim() === "" ? "" : `${integer(name, text)}`);
      wrong.value = { text: "", beside: "", why: "" };
    } catch (thrown) {
      if (!(thrown instanceof InvalidInput)) throw thrown;
      wrong.value = { text, beside: applied, why: sentence({ name, label }, thrown.message) };
    }
  };
  const { text, why } = wrong.value.beside === applied ? wrong.value : { text: "", why: "" };
  const id = `filter-${name}`;
  return (
    <div>
      <label>
        {label}
        <input
          inputMode="numeric"
          autocomplete="off"
          size={6}
          placeholder="any"
          value={why ? text : applied}
          aria-invalid={why !== ""}
          aria-describedby={why ? id : undefined}
          onChange={(event) => change(event.currentTarget.value)}
        />
      </label>
      {/* Inside the label it would become part of the field's name. */}
      {why && (
        <p class="wrong" id={id} role="alert">
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
