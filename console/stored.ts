/** Texts in the browser's storage. If the browser denies storage to the page, nothing is kept beyond the open page. */
type Place = "localStorage" | "sessionStorage";

/** "" if there is none. */
export function stored(place: Place, name: string): string {
  try {
    return globalThis[place].getItem(name) ?? "";
  } catch {
    return ""; // in some browsers reading the property throws already
  }
}

/** "" removes the text. */
export function store(place: Place, name: string, text: string): void {
  try {
    if (text === "") globalThis[place].removeItem(name);
    else globalThis[place].setItem(name, text);
  } catch {} // nothing is kept
}
