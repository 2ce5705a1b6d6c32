/** The caller's API key or token. It lives as long as the tab, and is sent in a header and shown nowhere. */
import { batch, type Signal, signal } from "@preact/signals";

const STORED = "petstore.credential";

/** If the browser denies storage to the page, nothing is kept beyond the open page; in some, reading the property throws already. */
function stored(): string {
  try {
    return sessionStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

function store(text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, text);
  } catch {}
}

const forgetting: (() => void)[] = [];

/** State that belongs to the current caller. It is reset when the caller changes: the next one may be allowed to see less. */
export function ofCaller<T>(initial: T): Signal<T> {
  const known = signal(initial);
  forgetting.push(() => {
    known.value = initial;
  });
  return known;
}

export const credential = signal(stored());
/** Whether the server requires a credential that nobody has entered yet. */
export const isAsked = signal(false);
/** Whether the sign-in dialog was dismissed. Then the page has a button to open it again. */
export const isUnknown = ofCaller(false);
/** Incremented when the caller changes: what was read before has to be read again. */
export const sessions = signal(0);

export function signIn(text: string): void {
  store(text);
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
