/** Modal dialogs: the frame, what is sent from one and how that failed, and the question whether to go on. */

import { type ErrorCode, PetstoreError } from "@petstore/client";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { notify } from "../notices.ts";

let count = 0;

/** What gets the focus, if there is one: where one writes, else what the dialog is for, else what changes nothing. */
const FIRST = ["input, select, textarea", "footer .primary", "footer button"];

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** The browser keeps the focus in it, and restores it afterwards. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useRef(`dialog-${++count}`).current;
  const isGone = useRef(false);
  useLayoutEffect(() => {
    const element = dialog.current;
    const row = document.activeElement?.closest("tr");
    const rows = [row, row?.nextElementSibling, row?.previousElementSibling];
    element?.showModal();
    // By default the focus goes to the first element, which is the button that closes the dialog.
    const first = FIRST.map((each) => element?.querySelector<HTMLElement>(each)).find(Boolean);
    first?.focus();
    return () => {
      isGone.current = true;
      element?.close();
      // The element that opened it may be gone, as may its whole row. Then the focus goes to a row beside it, or to the top.
      setTimeout(() => {
        if (document.activeElement !== document.body) return;
        const beside = rows.find((each) => each?.isConnected)?.querySelector<HTMLElement>("button, .actions > *");
        (beside ?? document.querySelector("h1"))?.focus();
      });
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={() => isGone.current || onClose()}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Texts where there is no answer, or it speaks of what people don't see. */
const ownWords: Partial<Record<ErrorCode, string>> = {
  UNREACHABLE:
    "No answer came. Is the petstore running? What was sent may have been done: look before you send it again.",
  ETAG_MISMATCH: "Somebody changed it meanwhile. Look at it in the list, and begin again.",
};

const wordsOf = ({ code, message }: PetstoreError): string => ownWords[code] ?? message;

export interface ProblemProps {
  readonly error: PetstoreError;
  /** An action that may help. */
  readonly act?: { readonly label: string; readonly onClick: () => void };
}

/** An error in the petstore's own words: its code, and what to do. */
export function Problem({ error, act }: ProblemProps) {
  return (
    <div class="problem" role="alert">
      <p>
        <code class="reason">{error.code}</code> {wordsOf(error)}
      </p>
      {error.requestId && <p class="quiet">Request {error.requestId}</p>}
      {act && (
        <button type="button" onClick={act.onClick}>
          {act.label}
        </button>
      )}
    </div>
  );
}

/**
 * What a dialog sends: one request at a time. Its answer closes the dialog, or says what was wrong. An
 * error that comes after the dialog was closed is told as a notice, for another dialog may be open by then.
 */
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

interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  /** The usual next step: its button is not red, and has the focus. */
  readonly isUsual?: boolean;
  readonly run: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Asks for confirmation of an action that can't be undone, and shows the error if it fails. */
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
