/** Answers that come when the dialog is closed that they were for: another one may be open by then. */
import type { PetstoreError } from "@petstore/client";
import { useLayoutEffect, useRef } from "preact/hooks";
import { notify } from "../notices.ts";
import { wordsOf } from "./problem.tsx";

/** Whether the dialog is gone. */
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

/** Tells of an error that no dialog shows any more. */
export function tellLate(title: string, error: PetstoreError): void {
  // What another caller had begun is none of this one's business.
  if (error.reason !== "CANCELLED") notify(`${title}: ${wordsOf(error)}`);
}
