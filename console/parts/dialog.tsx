/** A modal dialog. The browser keeps the focus in it, and restores it afterwards. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

let count = 0;

/** What gets the focus, if there is one: where one writes, else what the dialog is for, else what changes nothing. */
const FIRST = ["input, select, textarea", "footer .primary", "footer button"];

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

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
