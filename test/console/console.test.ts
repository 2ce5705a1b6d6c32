/** The console, as people use it, in a real browser and against the whole petstore. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { dialog, elsewhere, field, openConsole, press, row } from "./open.ts";

/** The words of usual length that stand on more than one line. Runs in the page. */
function brokenWords(): string[] {
  const broken: string[] = [];
  for (const body of document.querySelectorAll("tbody")) {
    const texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode())
      for (const { index, 0: word } of (text.textContent ?? "").matchAll(/(?<!\S)\S{1,13}(?!\S)/g)) {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        if (range.getClientRects().length > 1) broken.push(word);
      }
  }
  return broken;
}

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
    await page.locator(".primary", { hasText: "Create a category" }).waitFor();
    await press(page, "Create a category");
    await field(page, "Name").fill("Meerschweinchen");
    await press(page, "Create category");
    await page.locator(".primary", { hasText: "Create the first pet" }).waitFor();
    await press(page, "Create the first pet");
    await field(page, "Name").fill("Zwergpinscher");
    await field(page, "Category").fill("meerschweinchen");
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
      await page.getByRole("link", { name: view, exact: true }).click();
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
    await tabTo("field-categoryId");
    await keyboard.type("Axo");
    await dialog(page).locator("option[value^='Axolotls (']").waitFor({ state: "attached" });
    await keyboard.type("lotls");
    await tabTo("Create pet");
    await keyboard.press("Enter");
    const pet = page.getByRole("row", { name: /Ferdinand/ });
    await pet.getByText("available").waitFor();
    await pet.getByRole("link", { name: "Axolotls" }).waitFor();
    expect(await page.getByRole("status").filter({ hasText: "Ferdinand is in the shop as pet" }).count()).toBe(1);
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

  test("pets are found by name and by that of their category, and lead to their orders", async () => {
    const [cats, dogs] = [await someCategory("Finders"), await someCategory("Finders Keepers")];
    const named = async (name: string, categoryId: number) => (await send("POST", "/pets", { name, categoryId })).id;
    await named("Xaver", cats);
    const xena = await named("xena", cats);
    await named("Yann", cats);
    await named("Xerxes", dogs);
    await send("POST", "/store/orders", { petId: xena });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets`);
    const { page } = opened;
    const names = () => page.locator("tbody th .named").allTextContents();
    // The rows before stay until there are others, and how many there are is heard.
    const { promise, resolve } = Promise.withResolvers<void>();
    await page.getByText("shown").waitFor();
    await page.route("**/ListPets", (route) => promise.then(() => route.continue()));
    await page.getByLabel("Name").fill("X");
    await page.getByText("Reading…").waitFor();
    expect(await names()).toContain("YYann");
    resolve();
    await page.getByRole("status").getByText("3 shown").waitFor();
    expect(await names()).toEqual(["XXaver", "Xxena", "XXerxes"]);
    // Several begin so, and one alone has this name.
    const category = page.getByLabel("Category");
    await category.fill("finder");
    await category.press("Enter");
    await page.getByText("None has this name: choose one of the list.").waitFor();
    await category.fill("finders");
    await category.press("Enter");
    await page.getByText("2 shown").waitFor();
    await expect.poll(() => category.inputValue(), { timeout: 30_000 }).toBe(`Finders (${cats})`);
    expect(page.url()).toContain(`name=X&category=${cats}`);
    // What comes takes its place in the order of names.
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    await named("Xanthippe", cats);
    await page.getByText("3 shown").waitFor();
    expect(await names()).toEqual(["XXanthippe", "XXaver", "Xxena"]);
    // One that is offered and chosen is applied at once.
    await category.fill("Finders K");
    await page.locator(`option[value="Finders Keepers (${dogs})"]`).waitFor({ state: "attached" });
    await category.fill(`Finders Keepers (${dogs})`);
    await page.getByText("1 shown").waitFor();

    await page.goto(`${petstore.http}/#/pets?id=${xena}`);
    await page.getByRole("link", { name: "See orders for xena" }).click();
    await page.getByRole("row", { name: /xena.*open/ }).waitFor();
    await page.getByText("1 shown").waitFor();
    const pet = page.getByLabel("Pet", { exact: true });
    await expect.poll(() => pet.inputValue(), { timeout: 30_000 }).toBe(`xena (${xena})`); // once its name is known
    await page.goto(`${petstore.http}/#/categories?name=FINDERS%20k`);
    await page
      .getByRole("row", { name: /Finders Keepers/ })
      .getByRole("link", { name: "Pets" })
      .click();
    await page.getByRole("row", { name: /Xerxes/ }).waitFor();
    expect(await names()).toEqual(["XXerxes"]);
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
      const name = "Sir Reginald Fluffington the Third of Rumpelstilzia";
      const { id: petId } = await send("POST", "/pets", { name, categoryId: await someCategory("Schildkroeten") });
      await send("POST", "/store/orders", { petId });
      await using opened = await openConsole(browser, `${petstore.http}/#/${view}`, { width, scheme });
      const { page } = opened;
      if (view !== "requests") await page.locator("table[aria-busy=false] tbody tr").first().waitFor();
      expect(await axeFindings(page)).toEqual([]);
      // Nothing is cut off, and nothing has to be shifted to be read.
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      // No word is broken.
      expect(await page.evaluate(brokenWords)).toEqual([]);
      // Nothing of it is out of sight, or over something else.
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll(".side ul, .requests ol, main")].filter(
          (each) => each.scrollWidth > each.clientWidth,
        ),
      );
      expect(cut).toEqual([]);
    });
  });
});
