/** The caller's API key or token. It lives as long as the tab, and is sent in a header and shown nowhere. */
import { batch, type Signal, signal } from "@preact/signals";
import { store, stored } from "./stored.ts";

const STORED = "petstore.credential";

const forgetting: (() => void)[] = [];

/** What a caller was told. It is gone with the caller: the next one at this tab may be somebody else, who may see less. */
export function ofCaller<T>(initial: T): Signal<T> {
  const known = signal(initial);
  forgetting.push(() => {
    known.value = initial;
  });
  return known;
}

export const credential = signal(stored("sessionStorage", STORED));
/** The server asked who calls, and nobody has answered yet. */
export const isAsked = signal(false);
/** Whoever was asked did not answer: they are asked again when they want to. */
export const isUnknown = ofCaller(false);
/** Counts up when the caller becomes another one: what was read before is to be read again. */
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

/** Not now. */
export function stayUnknown(): void {
  isAsked.value = false;
  isUnknown.value = true;
}
