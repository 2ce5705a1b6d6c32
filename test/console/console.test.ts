/** The console, as people use it, in a real browser and against the whole petstore. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { dialog, elsewhere, field, openConsole, press, row } from "./open.ts";

/** The words of names that stand on more than one line. Runs in the page. */
const brokenWords = (names: readonly Element[]): string[] =>
  names.flatMap(({ firstChild: text }) =>
    [...(text?.textContent ?? "").matchAll(/\S+/g)].flatMap(({ index, 0: word }) => {
      const range = document.createRange();
      range.setStart(text as Node, index);
      range.setEnd(text as Node, index + word.length);
      return range.getClientRects().length > 1 ? [word] : [];
    }),
  );

describe.skipIf(chromiumMissing)("the console", { timeout: 120_000 }, () => {
  let petstore: Petstore;
  let browser: Browser;
  beforeAll(async () => {
    [petstore, browser] = await Promise.all([startPetstore(), startChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await petstore?.stop();
  });
  const { send, someCategory } = elsewhere(() => petstore.http);

  test("an empty shop says what to do next, and a phone shows the first pet at once", async () => {
    await using opened = await openConsole(browser, `${petstore.http}/#/pets`, { width: 375, height: 667 });
    const { page } = opened;
    await press(page, "Create a category");
    await field(page, "Name").fill("Meerschweinchen");
    await press(page, "Create category");
    await press(page, "Create the first pet");
    await field(page, "Name").fill("Zwergpinscher");
    await field(page, "Category").selectOption({ label: "Meerschweinchen (1)" });
    await press(page, "Create pet");
    const pet = page.getByRole("row", { name: /Zwergpinscher/ });
    await pet.getByRole("button", { name: "Order" }).waitFor();
    const { y = 0, height = 0 } = (await pet.boundingBox()) ?? {};
    expect([await page.evaluate(() => scrollY), y + height <= 667]).toEqual([0, true]);
    for (const [view, step] of [
      ["Orders", "Place the first order"],
      ["Categories", "New category"],
      ["Inventory", "Set stock"],
    ] as const) {
      await page.getByRole("link", { name: view }).click();
      await page.getByRole("button", { name: step }).waitFor();
    }
  });

  test("makes a category and a pet in it, by the keyboard alone", async () => {
    await using opened = await openConsole(browser, `${petstore.http}/#/categories`);
    const { page } = opened;
    const { keyboard } = page;
    const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent);
    /** As somebody goes there who sees nothing but where the focus is. */
    const tabTo = async (name: string) => {
      for (let steps = 0; steps < 40 && (await focused()) !== name; steps++) await keyboard.press("Tab");
      expect(await focused()).toBe(name);
    };
    await tabTo("Skip to the content");
    await keyboard.press("Enter");
    await tabTo("New category");
    await keyboard.press("Enter");
    await dialog(page).waitFor();
    expect(await focused()).toBe("field-name"); // where one begins to write
    await keyboard.type("Axolotls");
    await keyboard.press("Enter");
    await page.getByRole("row", { name: /Axolotls/ }).waitFor();
    await dialog(page).waitFor({ state: "detached" });
    expect(await focused()).toBe("New category"); // the dialog gave it back

    await page.goto(`${petstore.http}/#/pets`);
    await page.getByRole("heading", { name: "Pets" }).waitFor();
    await tabTo("New pet");
    await keyboard.press("Enter");
    await tabTo("field-name");
    await keyboard.type("Ferdinand");
    await page.getByRole("option", { name: /Axolotls/ }).waitFor({ state: "attached" });
    await tabTo("field-categoryId");
    await keyboard.type("Axolotls");
    await tabTo("Create pet");
    await keyboard.press("Enter");
    const pet = page.getByRole("row", { name: /Ferdinand/ });
    await pet.getByText("available").waitFor();
    await pet.getByRole("link", { name: "Axolotls" }).waitFor();
    expect(await page.getByRole("status").filter({ hasText: "Ferdinand is pet" }).count()).toBe(1);
  });

  test("a name that looks like HTML is text", async () => {
    const name = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    await someCategory(name);
    await using opened = await openConsole(browser, `${petstore.http}/#/categories`);
    const { page } = opened; // what it runs or loads beside its own is a fault
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    const id = await someCategory(name);
    await row(page, id).getByRole("rowheader", { name }).waitFor();
    await page.getByLabel("Latest events").getByText(`Category ${id} ${name}`).waitFor();
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByLabel("The answer", { exact: true }).getByText(JSON.stringify(name)).first().waitFor();
    expect(await page.locator("main img, script:not([src])").count()).toBe(0);
  });

  test("a list is read page by page, and filtered by what the API filters by", async () => {
    const categoryId = await someCategory("many");
    const ids: number[] = [];
    for (let i = 0; i < 30; i++) ids.push((await send("POST", "/pets", { name: `Mouse ${i}`, categoryId })).id);
    await send("PATCH", `/pets/${ids[7]}`, { status: "sold" });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?category=${categoryId}`);
    const { page } = opened;
    const names = () => page.locator("tbody th .named").allTextContents();
    await page.getByText("25+ shown").waitFor();
    await press(page, "More");
    await page.getByText("30 shown").waitFor();
    expect(await names()).toEqual(Array.from({ length: 30 }, (_, i) => `MMouse ${29 - i}`));
    await page.getByLabel("Sort").selectOption("oldest first");
    await page.getByText("25+ shown").waitFor();
    expect((await names()).at(0)).toBe("MMouse 0");
    await page.getByLabel("Status").selectOption("sold");
    await page.getByText("1 shown").waitFor();
    expect(await names()).toEqual(["MMouse 7"]);
    expect(page.url()).toContain("status=sold"); // so it can be kept
    // What is no identifier yet stays as it is typed, and a view that says another one forgets it.
    const id = page.getByLabel("ID", { exact: true });
    const enter = async (text: string) => {
      await id.fill(text);
      await id.press("Enter"); // filled alone it is not yet changed
    };
    await enter("7x");
    await page.getByText("ID must be a whole number").waitFor();
    expect([await id.inputValue(), page.url().includes("id=")]).toEqual(["7x", false]);
    await enter(`${ids[7]}`);
    await page.getByText("ID must be a whole number").waitFor({ state: "detached" });
    expect(page.url()).toContain(`id=${ids[7]}`);
    await enter("x");
    await page.getByText("ID must be a whole number").waitFor();
    await page.evaluate(`location.hash = "#/pets?category=${categoryId}&id=${ids[8]}"`);
    await page.getByText("ID must be a whole number").waitFor({ state: "detached" });
    expect(await id.inputValue()).toBe(`${ids[8]}`);

    // All that is shown goes elsewhere, but there is more.
    await page.goto(`${petstore.http}/#/pets?category=${categoryId}`);
    await page.getByText("25+ shown").waitFor();
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    await page.locator("table[aria-busy=false]").waitFor();
    const other = await someCategory("elsewhere");
    for (const id of ids.slice(5)) await send("PATCH", `/pets/${id}`, { categoryId: other });
    await page.getByText("0+ shown").waitFor();
    expect(await page.getByText("No pet matches.").count()).toBe(0);
    await press(page, "More");
    await page.getByText(/^5 shown/).waitFor();
  });

  test("each request is shown as others would make it, with its answer", async () => {
    await someCategory("for all to see");
    await using opened = await openConsole(browser, `${petstore.http}/#/categories`);
    const { page } = opened;
    await page.getByText("for all to see").first().waitFor();
    // The list is read again when changes begin to come. Cut off by leaving it, that would be the latest request.
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    await page.locator("table[aria-busy=false] tbody tr").first().waitFor();
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByRole("heading", { name: "ListCategories" }).waitFor();
    const form = page.getByRole("tabpanel");
    expect(await form.locator("pre").textContent()).toContain("GET /categories?limit=25 HTTP/1.1");
    const all = page.getByRole("list", { name: "Requests, the latest first" });
    expect(await all.getByText("failed").count()).toBe(0); // nothing did; what was asked anew is not shown
    await page.getByRole("tab", { name: "HTTP" }).focus();
    await page.keyboard.press("ArrowRight");
    expect(await form.locator("pre").textContent()).toBe(`curl '${petstore.http}/categories?limit=25'`);
    await page.keyboard.press("End");
    expect(await form.locator("pre").textContent()).toContain(
      "await petstore.categories.list({ limit: 25 }).pages().next();",
    );
    await page
      .getByLabel("The answer", { exact: true })
      .getByText(/HTTP\/1\.1 200 OK[\s\S]*for all to see/)
      .waitFor();
    expect(await axeFindings(page)).toEqual([]);
  });

  const screens = [
    { screen: "light", width: 1280, scheme: "light" },
    { screen: "dark", width: 1280, scheme: "dark" },
    { screen: "narrow", width: 360, scheme: "light" },
    { screen: "narrow and dark", width: 360, scheme: "dark" },
  ] as const;
  describe.each(screens)("$screen", ({ width, scheme }) => {
    test.each(["pets", "categories", "orders", "inventory", "requests"])("everybody can use %s", async (view) => {
      const name = "Sir Reginald Fluffington the Third of Featherstonehaugh";
      const { id: petId } = await send("POST", "/pets", { name, categoryId: await someCategory("Meerschweinchen") });
      await send("POST", "/store/orders", { petId });
      await using opened = await openConsole(browser, `${petstore.http}/#/${view}`, { width, scheme });
      const { page } = opened;
      if (view !== "requests") await page.locator("table[aria-busy=false] tbody tr").first().waitFor();
      expect(await axeFindings(page)).toEqual([]);
      // Nothing is cut off, and nothing has to be shifted to be read.
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      // A name is read word by word.
      expect(await page.locator(".name").evaluateAll(brokenWords)).toEqual([]);
      // Of the navigation nothing is out of sight, nor of what was asked.
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll(".side ul, .requests ol")].filter((each) => each.scrollWidth > each.clientWidth),
      );
      expect(cut).toEqual([]);
    });
  });
});
