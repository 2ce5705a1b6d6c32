/** Asks for confirmation of an action that can't be undone, and shows the error if it fails. */
import { PetstoreError } from "@petstore/client";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./problem.tsx";
import { useSending } from "./sending.ts";

interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  /** The usual next step: its button is not red, and has the focus. */
  readonly isUsual?: boolean;
  readonly run: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Confirm({ title, action, isUsual = false, run, onClose, children }: ConfirmProps) {
  const problem = useSignal<PetstoreError | undefined>(undefined);
  const { isSending, send } = useSending(title, onClose);
  const confirm = () => {
    problem.value = undefined;
    return send(run, (thrown) => {
      if (!(thrown instanceof PetstoreError)) throw thrown;
      problem.value = thrown;
    });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {problem.value && <Problem error={problem.value} />}
      <footer>
        <button type="button" onClick={onClose}>
          Never mind
        </button>
        <button type="button" class={isUsual ? "primary" : "danger"} aria-disabled={isSending} onClick={confirm}>
          {action}
        </button>
      </footer>
    </Dialog>
  );
}
