/** For answers that arrive after their dialog was closed: another one may be open by then. */
import type { PetstoreError } from "@petstore/client";
import { useLayoutEffect, useRef } from "preact/hooks";
import { notify } from "../notices.ts";
import { wordsOf } from "./problem.tsx";

/** `current` becomes true when the component is removed. */
export function useGone(): { readonly current: boolean } {
  const isGone = useRef(false);
  useLayoutEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  return isGone;
}

/** Shows the error of a closed dialog as a notice. */
export function tellLate(title: string, error: PetstoreError): void {
  // The caller has changed: the new one must not see errors of the previous one.
  if (error.reason !== "CANCELLED") notify(`${title}: ${wordsOf(error)}`);
}
