/** Several successive changes of one document, of which only the final document is stored. */

import { checkKeys } from "../engine/indexes.ts";
import type { Decide, Doc, Id } from "../port.ts";
import type { Fields } from "./codec.ts";
import { copyOf } from "./copy.ts";
import { frozen } from "./frozen.ts";

/** How long deciding may go on before other work gets its turn, in milliseconds. */
export const MAX_FOLD_MS = 10;

export type Fold<T extends Doc> = ReturnType<typeof fold<T>>;

/** `stored` is frozen, and so is every successor. `keys` are the indexed fields. */
export function fold<T extends Doc>(id: Id, stored: T | undefined, keys: readonly string[]) {
  let doc = stored;
  let isChanged = false;

  function become(next: T | undefined): void {
    doc = next;
    isChanged = true;
  }

  return {
    /** The document as the last change left it. */
    get doc() {
      return doc;
    },
    /** True when it differs from the stored document. */
    get isChanged() {
      return isChanged;
    },
    /** Decides on the document as the changes before left it. If it throws, nothing has changed. */
    update<R>(decide: Decide<T, R>): R {
      const rev = (doc?.rev ?? 0) + 1;
      const decision = decide(doc, rev);
      if (decision.action === "keep") return decision.result;
      if (decision.action !== "put") throw new TypeError("A decision is made by keep(...) or put(...), at once.");
      const next: Fields & { readonly _id: Id } = { ...decision.doc, rev };
      if (next._id !== id) throw new TypeError(`The successor of document ${id} has the _id ${String(next._id)}.`);
      checkKeys(next, keys);
      become(frozen(copyOf(next)) as unknown as T);
      return decision.result;
    },
    remove(isOver: (doc: T) => boolean): void {
      if (doc && isOver(doc)) become(undefined);
    },
  };
}
