/** Light or dark: as the system says, until somebody chooses. */
import { effect, signal } from "@preact/signals";
import { store, stored } from "./stored.ts";

export type Theme = "system" | "light" | "dark";

const STORED = "petstore.theme";
const isTheme = (text: string): text is Theme => text === "system" || text === "light" || text === "dark";
const kept = stored("localStorage", STORED);

export const theme = signal<Theme>(isTheme(kept) ? kept : "system");

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  store("localStorage", STORED, chosen);
}

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
