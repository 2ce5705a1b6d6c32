/** A text field that offers names as one types. */
import { useSignal } from "@preact/signals";
import type { TargetedEvent } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { type Offered, offer } from "../records/names.ts";

/** How long to wait for another letter, in milliseconds. */
const LULL_MS = 150;

/** Calls `act` with the last value once no other has come for a while, unless the component has gone. */
export function useLull<T>(act: (value: T) => void): (value: T) => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (value) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(act, LULL_MS, value);
  };
}

interface OfferInputProps {
  readonly id: string;
  readonly offered: Offered;
  readonly value: string;
  readonly name?: string;
  readonly size?: number;
  readonly placeholder?: string;
  readonly "aria-invalid": boolean;
  readonly "aria-describedby": string | undefined;
  readonly onChange?: (event: TargetedEvent<HTMLInputElement>) => void;
  /** `isOffered` is true where the text is one of the list: it was chosen. */
  readonly onText: (text: string, isOffered: boolean) => void;
}

export function OfferInput({ offered, onText, ...input }: OfferInputProps) {
  const list = useId();
  const labels = useSignal<readonly string[]>([]);
  const last = useRef<string>(undefined);
  const look = async (text: string) => {
    last.current = text;
    // Without an answer nothing is offered; what the field takes does not depend on it.
    const found = await offer(offered, text).catch(() => []);
    if (last.current === text) labels.value = found;
  };
  const lookSoon = useLull(look);
  return (
    <>
      <input
        {...input}
        list={list}
        autocomplete="off"
        onFocus={() => last.current === undefined && void look("")}
        onInput={({ currentTarget: { value } }) => {
          const isOffered = labels.peek().includes(value);
          onText(value, isOffered);
          if (!isOffered) lookSoon(value);
        }}
      />
      <datalist id={list}>
        {labels.value.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}
