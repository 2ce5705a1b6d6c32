/** The page at `/docs`, as people use it: in a browser, and its commands in a shell. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore?.stop());

describe.skipIf(chromiumMissing)("in a browser", { timeout: 120_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser?.close());

  const screens = [
    ["a desktop", { width: 1280, height: 800 }],
    ["a phone", { width: 390, height: 844 }],
  ] as const;
  describe.each(screens)("of %s", (_, viewport) => {
    test.each(["light", "dark"] as const)("in %s colours", async (colorScheme) => {
      await using context = await browser.newContext({ viewport, colorScheme });
      const page = await context.newPage();
      const faults: string[] = [];
      page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
      page.on("request", (request) => faults.push(request.url()));
      await page.goto(`${petstore.http}/docs`);
      expect(faults.splice(0)).toEqual([`${petstore.http}/docs`]); // nothing else was asked for or refused
      const inView = (text: string) => page.getByText(text, { exact: true }).first();
      expect((await inView("/pets").boundingBox())?.y).toBeLessThan(viewport.height);

      await page.goto(`${petstore.http}/docs#updatePet`);
      await page
        .locator("#updatePet")
        .getByText("If-None-Match", { exact: true })
        .first()
        .waitFor({ state: "visible" });
      await openBySpace(page, "Creates a pet");
      expect(await axeFindings(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(viewport.width);
      expect(faults.splice(0)).toEqual([]);
    });
  });

  test("with everything open", async () => {
    await using context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await context.newPage();
    await page.goto(`${petstore.http}/docs`);
    await page.evaluate(() => {
      for (const each of document.querySelectorAll("details")) each.open = true;
    });
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  });

  async function openBySpace(page: Page, text: string): Promise<void> {
    const summary = page.locator("summary", { hasText: text }).first();
    await summary.focus();
    await page.keyboard.press("Space");
    expect(await summary.locator("..").evaluate((details: HTMLDetailsElement) => details.open)).toBe(true);
  }
});

test("its commands succeed on an empty petstore, from the creates to the deletions", { timeout: 120_000 }, async () => {
  const page = await (await fetch(`${petstore.http}/docs`)).text();
  const shown = [...page.matchAll(/<code>(curl [^<]*)<\/code>/g)].map(([, text = ""]) =>
    text.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))),
  );
  const commands = shown.filter((command) => !command.startsWith("curl -N")); // events have no end
  expect(commands.length).toBeGreaterThan(15);
  const order = [
    /categories --json/,
    /pets --json/,
    /-X P.*(categories|pets)/, // before an order has taken the pet
    /orders --json/,
    /^curl -i \S+$/,
    /-X P/,
    /-X DELETE .*orders/,
    /-X DELETE .*pets/,
    /-X DELETE/,
  ];
  const rank = (command: string) => order.findIndex((one) => one.test(command));
  for (const command of commands.toSorted((a, b) => rank(a) - rank(b))) {
    const { stdout } = await promisify(execFile)("sh", ["-c", command]);
    expect([command, stdout.split(" ")[1]]).toEqual([command, expect.stringMatching(/^20[014]$/)]);
  }
});
