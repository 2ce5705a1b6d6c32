/** Texts that a browser keeps. Where it lets this page keep nothing, whoever reads one holds it as long as the page is open. */
type Place = "localStorage" | "sessionStorage";

/** "" where none is kept. */
export function stored(place: Place, name: string): string {
  try {
    return globalThis[place].getItem(name) ?? "";
  } catch {
    return ""; // looking at the place is forbidden already
  }
}

/** "" keeps none. */
export function store(place: Place, name: string, text: string): void {
  try {
    if (text === "") globalThis[place].removeItem(name);
    else globalThis[place].setItem(name, text);
  } catch {} // nothing is kept
}
