/** Asks for confirmation of an action such as a deletion, and shows the error if it fails. */
import { isPetstoreError, type PetstoreError } from "@petstore/client";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { tellLate, useGone } from "./late.ts";
import { Problem } from "./problem.tsx";

interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  readonly run: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Confirm({ title, action, run, onClose, children }: ConfirmProps) {
  const problem = useSignal<PetstoreError | undefined>(undefined);
  const isSending = useSignal(false);
  const isGone = useGone();
  async function confirm(): Promise<void> {
    if (isSending.value) return;
    isSending.value = true;
    problem.value = undefined;
    try {
      await run();
      if (!isGone.current) onClose();
    } catch (thrown) {
      if (!isPetstoreError(thrown)) throw thrown;
      problem.value = thrown;
      if (isGone.current) tellLate(title, thrown);
    } finally {
      isSending.value = false;
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="body">{children}</div>
      {problem.value && <Problem error={problem.value} />}
      <footer>
        <button type="button" onClick={onClose}>
          Never mind
        </button>
        <button type="button" class="danger" aria-disabled={isSending.value} onClick={confirm}>
          {action}
        </button>
      </footer>
    </Dialog>
  );
}
