/** Starts a real browser for tests: the Chromium of this machine, driven by playwright-core. */
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { chromiumProgram } from "./chromium-program.ts";

export const startChromium = (): Promise<Browser> =>
  // Chromium's own sandbox works neither as root nor in containers.
  chromium.launch({ executablePath: chromiumProgram ?? "chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });

/** The findings of axe for a page in its present state, as "rule: element" lines. */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}
