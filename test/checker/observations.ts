/** Records how each version of a record was shown, or stored for the outside to see. */
import type { Kind } from "../workload/operations.ts";
import { nameOf, type Shown } from "../workload/perform.ts";

/** The mark that a write leaves in its record, which distinguishes its effect from all others. */
export const markIn = ({ kind, view }: Shown): string | undefined => {
  if (kind === "inventory") return undefined;
  return `${kind} ${kind === "order" ? nameOf(Number(view.date)) : view.name}`;
};

/** `onMark` is called when a mark first appears in a record. */
export function createObservations(
  report: (violation: string) => void,
  onMark: (mark: string, kind: Kind) => void = () => {},
) {
  /** By kind, id and version. */
  const seen = new Map<string, Shown["view"]>();
  /** Ids of the records in which a mark has ever been seen. */
  const marked = new Map<string, Set<number>>();
  const nameIn = ({ kind, id, version }: Shown) => `${kind} ${id} version ${version}`;

  return {
    marked,
    nameIn,
    viewOf: (shown: Shown) => seen.get(nameIn(shown)),
    /** Records a sighting. One version of a record must always look the same. */
    show(shown: Shown): void {
      const name = nameIn(shown);
      const before = seen.get(name);
      if (before && JSON.stringify(before) !== JSON.stringify(shown.view))
        report(`${name} was shown as ${JSON.stringify(before)} and then as ${JSON.stringify(shown.view)}`);
      seen.set(name, shown.view);
      const mark = markIn(shown);
      if (!mark) return;
      const ids = marked.get(mark) ?? new Set();
      marked.set(mark, ids);
      if (!ids.has(shown.id)) onMark(mark, shown.kind);
      ids.add(shown.id);
    },
  };
}
