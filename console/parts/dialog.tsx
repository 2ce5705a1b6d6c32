/** A modal dialog. The browser keeps the focus in it, and restores it afterwards. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

let count = 0;

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
    element?.showModal();
    // By default the focus goes to the first element, which is the button that closes the dialog.
    element?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => {
      isGone.current = true;
      element?.close();
      // The element that opened it may be gone, such as the row of a deleted record. Then the focus goes to the top of the
      // view.
      setTimeout(() => {
        if (document.activeElement === document.body) document.querySelector("h1")?.focus();
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
