/** A form in a dialog. The petstore validates the input; each error is shown at the field that it is about. */
import { type ErrorCode, PetstoreError } from "@petstore/client";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Offered } from "../records/names.ts";
import { Conflict } from "./conflict.tsx";
import { Dialog, Problem, useSending } from "./dialog.tsx";
import { type FieldErrors, type FieldTexts, fieldErrors, InvalidInput, stepped } from "./field-errors.ts";
import { OfferInput } from "./offers.tsx";

/** Texts of the fields, by the fields' names. */
export type Values = Readonly<Record<string, string>>;

export interface FieldSpec extends FieldTexts {
  readonly kind?: "text" | "lines" | "number" | "count" | "moment" | "check" | "secret";
  /** What is offered by name while one types. */
  readonly offered?: Offered;
  readonly options?: readonly (readonly [value: string, label: string])[] | undefined;
  readonly hint?: ComponentChildren;
}

/** The record as somebody else has changed it. */
export interface Theirs {
  readonly values: Values;
  readonly etag: string;
}

/** What a form of a record takes that is there already: it as it was read, and how it is read again. */
export function editing<T extends { readonly etag: string }>(
  before: T,
  valuesOf: (record: T) => Values,
  read: () => Promise<T>,
) {
  const seen = (record: T): Theirs => ({ values: valuesOf(record), etag: record.etag });
  return { initial: valuesOf(before), etag: before.etag, theirs: async () => seen(await read()) };
}

export interface RecordFormProps {
  readonly title: string;
  readonly submitLabel: string;
  readonly fields: readonly FieldSpec[];
  readonly initial?: Values;
  /** Fields that codes other than VALIDATION_FAILED are about. */
  readonly fieldOf?: Partial<Record<ErrorCode, string>>;
  /** The revision of the record that was read: the change applies only to this one. */
  readonly etag?: string;
  readonly submit: (values: Values, etag: string) => Promise<void>;
  /** Reads the record again after a conflict. */
  readonly theirs?: () => Promise<Theirs>;
  readonly onClose: () => void;
}

export function RecordForm({
  title,
  submitLabel,
  fields,
  initial = {},
  fieldOf,
  etag = "",
  submit,
  theirs,
  onClose,
}: RecordFormProps) {
  const values = useSignal<Values>(initial);
  const errors = useSignal<FieldErrors>({});
  const problem = useSignal<PetstoreError | undefined>(undefined);
  const conflict = useSignal<Values | undefined>(undefined);
  const condition = useSignal(etag);
  const form = useRef<HTMLFormElement>(null);
  const { isSending, send } = useSending(title, onClose);

  async function sendValues(): Promise<void> {
    problem.value = undefined;
    conflict.value = undefined;
    errors.value = {};
    // An incomplete date has the value "", like an empty field.
    const half = [...(form.current?.querySelectorAll("input") ?? [])].find(({ validity }) => validity.badInput);
    if (half) throw new InvalidInput(half.name, "must be a whole date and time, or empty");
    await submit(values.value, condition.value);
  }

  async function tell(thrown: unknown, isGone: boolean): Promise<void> {
    if (!(thrown instanceof PetstoreError) && !(thrown instanceof InvalidInput)) throw thrown;
    errors.value = fieldErrors(thrown, fields, values.value, fieldOf);
    if (!(thrown instanceof PetstoreError)) return;
    if (thrown.code === "ETAG_MISMATCH" && theirs && !isGone) await meet(theirs);
    else if (Object.keys(errors.value).length === 0) problem.value = thrown;
  }

  async function meet(read: () => Promise<Theirs>): Promise<void> {
    try {
      const now = await read();
      condition.value = now.etag;
      conflict.value = now.values;
    } catch (thrown) {
      if (!(thrown instanceof PetstoreError)) throw thrown;
      problem.value = thrown;
    }
  }

  const wrong = errors.value;
  useEffect(() => {
    if (Object.keys(wrong).length > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [wrong]);

  return (
    <Dialog title={title} onClose={onClose}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void send(sendValues, tell);
        }}
      >
        {fields.map((spec) => (
          <Field
            key={spec.name}
            spec={spec}
            value={values.value[spec.name] ?? ""}
            error={wrong[spec.name]}
            onInput={(value) => {
              values.value = { ...values.value, [spec.name]: value };
            }}
          />
        ))}
        {problem.value && <Problem error={problem.value} />}
        {conflict.value && (
          <Conflict
            fields={fields}
            mine={values.value}
            theirs={conflict.value}
            onTake={(taken) => {
              values.value = taken;
              conflict.value = undefined;
            }}
          />
        )}
        <footer>
          <button type="button" onClick={onClose}>
            Never mind
          </button>
          <button type="submit" class="primary" aria-disabled={isSending}>
            {submitLabel}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface FieldProps {
  readonly spec: FieldSpec;
  readonly value: string;
  readonly error: string | undefined;
  readonly onInput: (value: string) => void;
}

const inputType = {
  text: "text",
  number: "text",
  count: "text",
  moment: "datetime-local",
  secret: "password",
} as const;

export function Field({ spec, value, error, onInput }: FieldProps) {
  const { name, label, kind = "text", offered, options, hint } = spec;
  const id = `field-${name}`;
  const common = {
    id,
    name,
    "aria-invalid": error !== undefined,
    "aria-describedby": [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined,
  };
  const typed = (event: Event) => onInput((event.currentTarget as HTMLInputElement).value);
  return (
    <div class={kind === "check" ? "field check" : "field"}>
      <label for={id}>{label}</label>
      {options ? (
        <select {...common} value={value} onChange={typed}>
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      ) : offered ? (
        <OfferInput {...common} offered={offered} value={value} onText={onInput} />
      ) : kind === "lines" ? (
        <textarea {...common} rows={3} value={value} onInput={typed} />
      ) : kind === "check" ? (
        <input
          {...common}
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => onInput(`${event.currentTarget.checked}`)}
        />
      ) : kind === "count" ? (
        <div class="stepper">
          <button type="button" aria-label="One less" onClick={() => onInput(stepped(value, -1))}>
            −
          </button>
          <input {...common} inputMode="numeric" autocomplete="off" value={value} onInput={typed} />
          <button type="button" aria-label="One more" onClick={() => onInput(stepped(value, 1))}>
            +
          </button>
        </div>
      ) : (
        <input
          {...common}
          type={inputType[kind] as "text"}
          inputMode={kind === "number" ? "numeric" : undefined}
          autocomplete="off"
          value={value}
          onInput={typed}
        />
      )}
      {error !== undefined && (
        <p class="wrong" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint && (
        <p class="quiet" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
