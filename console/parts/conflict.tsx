/** Tells that somebody else has changed the record that a form is about. */
import { shownTime } from "./field-errors.ts";
import type { FieldSpec, Values } from "./form.tsx";

interface ConflictProps {
  readonly fields: readonly FieldSpec[];
  readonly mine: Values;
  readonly theirs: Values;
  readonly onTake: (values: Values) => void;
}

export function Conflict({ fields, mine, theirs, onTake }: ConflictProps) {
  const others = differences(fields, mine, theirs);
  return (
    <div class="problem" role="alert">
      <p>Somebody changed it meanwhile. {others && `Theirs: ${others}. `}Send yours again, or take theirs.</p>
      <button type="button" onClick={() => onTake(theirs)}>
        Take theirs
      </button>
    </div>
  );
}

/** What is in their fields. Those that say what to do, and not what is, are left out. */
export const differences = (fields: readonly FieldSpec[], mine: Values, theirs: Values): string =>
  fields
    .filter(({ name, options }) => !options && (mine[name] ?? "") !== (theirs[name] ?? ""))
    .map(({ name, label, kind }) => {
      const text = theirs[name] ?? "";
      if (text === "") return `${label} (empty)`;
      return `${label} “${kind === "moment" ? shownTime(text) : text}”`;
    })
    .join(", ");
