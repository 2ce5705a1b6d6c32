/** The caller's API key or token. It lives as long as the tab, and is sent in a header and shown nowhere. */
import { batch, type Signal, signal } from "@preact/signals";
import { store, stored } from "./stored.ts";

const STORED = "petstore.credential";

const forgetting: (() => void)[] = [];

/** State that belongs to the current caller. It is reset when the caller changes: the next one may be allowed to see less. */
export function ofCaller<T>(initial: T): Signal<T> {
  const known = signal(initial);
  forgetting.push(() => {
    known.value = initial;
  });
  return known;
}

export const credential = signal(stored("sessionStorage", STORED));
/** Whether the server requires a credential that nobody has entered yet. */
export const isAsked = signal(false);
/** Whether the sign-in dialog was dismissed. Then the page has a button to open it again. */
export const isUnknown = ofCaller(false);
/** Incremented when the caller changes: what was read before has to be read again. */
export const sessions = signal(0);

export function signIn(text: string): void {
  store("sessionStorage", STORED, text);
  batch(() => {
    for (const forget of forgetting) forget();
    credential.value = text;
    isAsked.value = false;
    sessions.value++;
  });
}

export const signOut = (): void => signIn("");

/** Dismisses the sign-in dialog. */
export function stayUnknown(): void {
  isAsked.value = false;
  isUnknown.value = true;
}
