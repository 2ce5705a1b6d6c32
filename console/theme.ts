/** Light or dark: as the system says, until somebody chooses. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const STORED = "petstore.theme";
const isTheme = (text: string | null): text is Theme => text === "system" || text === "light" || text === "dark";
const stored = localStorage.getItem(STORED);

export const theme = signal<Theme>(isTheme(stored) ? stored : "system");

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(STORED, chosen);
}

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
