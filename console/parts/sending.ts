/** What a dialog sends: one request at a time. Its answer closes the dialog, or says what was wrong. */
import { PetstoreError } from "@petstore/client";
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { notify } from "../notices.ts";
import { wordsOf } from "./problem.tsx";

/** An error that comes after the dialog was closed is told as a notice, for another dialog may be open by then. */
export function useSending(title: string, onClose: () => void) {
  const isSending = useSignal(false);
  const isGone = useRef(false);
  useLayoutEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );

  async function send(work: () => Promise<void>, failed: (thrown: unknown, isGone: boolean) => unknown): Promise<void> {
    if (isSending.value) return;
    isSending.value = true;
    try {
      await work();
      if (!isGone.current) onClose();
    } catch (thrown) {
      await failed(thrown, isGone.current);
      // CANCELLED: the caller has changed, and the new one must not see errors of the previous one.
      if (isGone.current && thrown instanceof PetstoreError && thrown.code !== "CANCELLED")
        notify(`${title}: ${wordsOf(thrown)}`);
    } finally {
      isSending.value = false;
    }
  }
  return { isSending: isSending.value, send };
}
