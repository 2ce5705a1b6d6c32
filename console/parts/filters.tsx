/** What a list is narrowed by. It stands in the address of the page. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { route, setQuery } from "../route.ts";
import { InvalidInput, integer } from "./field-errors.ts";

export const Filters = ({ children }: { readonly children: ComponentChildren }) => (
  <search class="filters">{children}</search>
);

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  /** What stands for no filter. */
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

/** An identifier, once it is one. */
export function IdFilter({ name, label }: { readonly name: string; readonly label: string }) {
  const error = useSignal("");
  const change = (text: string) => {
    error.value = "";
    try {
      setQuery(name, text.trim() === "" ? "" : `${integer(name, text)}`);
    } catch (thrown) {
      if (!(thrown instanceof InvalidInput)) throw thrown;
      error.value = thrown.message;
    }
  };
  const id = `filter-${name}`;
  return (
    <label>
      {label}
      <input
        inputMode="numeric"
        autocomplete="off"
        size={6}
        placeholder="any"
        value={route.value.query.get(name) ?? ""}
        aria-invalid={error.value !== ""}
        aria-describedby={error.value ? id : undefined}
        onChange={(event) => change(event.currentTarget.value)}
      />
      {error.value && (
        <span class="wrong" id={id} role="alert">
          {error}
        </span>
      )}
    </label>
  );
}

/** The identifier that the address filters by. */
export function idIn(query: URLSearchParams, name: string): bigint | undefined {
  const text = query.get(name) ?? "";
  return /^-?\d{1,19}$/.test(text) ? BigInt(text) : undefined;
}
