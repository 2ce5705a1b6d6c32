/** Opens the console in a browser and helps tests to operate it. */
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";

/** Time limit for everything on the page. Generous, since the machine may be busy with other tests. */
const PATIENCE_MS = 30_000;

export interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** Errors in the page so far: uncaught errors, violations of the content security policy, and requests to other origins. */
  readonly faults: readonly string[];
}

export interface Screen {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
}

/** Opens a view in a new browser profile. */
export async function openConsole(
  browser: Browser,
  url: string,
  { width = 1280, height = 800, scheme = "light" }: Screen = {},
): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    locale: "en-GB",
    timezoneId: "UTC",
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", ({ message }) => faults.push(message));
  page.on("console", (message) => {
    // The browser also logs answers with an error status here, which are no fault of the page.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`asked ${request.url()}`);
  });
  await page.goto(url);
  await page.locator("h1").waitFor();
  return {
    page,
    faults,
    async [Symbol.asyncDispose]() {
      await context.close();
      expect(faults).toEqual([]);
    },
  };
}

/** The table row of a record, once it exists. */
export const row = (page: Page, id: number | string) => page.locator(`tr[data-id="${id}"]`);

export const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
export const dialog = (page: Page) => page.getByRole("dialog");
export const field = (page: Page, label: string) => dialog(page).getByLabel(label, { exact: true });

/** Creates and changes records by HTTP, as another client. */
export function elsewhere(address: () => string) {
  async function send(method: string, path: string, body?: object): Promise<{ id: number }> {
    const response = await fetch(address() + path, {
      method,
      ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    expect([method, path, response.ok]).toEqual([method, path, true]);
    return response.status === 204 ? { id: 0 } : ((await response.json()) as { id: number });
  }
  const someCategory = async (name = "dogs") => (await send("POST", "/categories", { name })).id;
  const somePet = async (name = "Rex") => (await send("POST", "/pets", { name, categoryId: await someCategory() })).id;
  return { send, someCategory, somePet };
}
