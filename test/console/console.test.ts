/** The console, as people use it, in a real browser and against the whole petstore. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { openConsole, row } from "./open.ts";

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

  /** By HTTP, as somebody else does it. */
  async function send(method: string, path: string, body?: object): Promise<{ id: number }> {
    const response = await fetch(petstore.http + path, {
      method,
      ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    expect([method, path, response.ok]).toEqual([method, path, true]);
    return response.status === 204 ? { id: 0 } : ((await response.json()) as { id: number });
  }
  const someCategory = async (name = "dogs") => (await send("POST", "/categories", { name })).id;
  const somePet = async (name = "Rex") => (await send("POST", "/pets", { name, categoryId: await someCategory() })).id;

  const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
  const dialog = (page: Page) => page.getByRole("dialog");
  const field = (page: Page, label: string) => dialog(page).getByLabel(label, { exact: true });

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

  test("shows what the petstore says at the field that it is about", async () => {
    await someCategory();
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await press(page, "New pet");
    await press(page, "Create pet");
    await page.locator("#field-name-error").waitFor();
    expect(await page.locator("#field-name-error").textContent()).toMatch(/required/);
    expect(await page.locator("#field-categoryId-error").textContent()).toMatch(/required/);
    // Whoever can't see it hears it: the focus is in the first field, which names its error.
    const focused = page.locator("#field-name:focus"); // it comes there when the errors have been drawn
    expect(await focused.getAttribute("aria-describedby")).toBe("field-name-error");
    expect(await axeFindings(page)).toEqual([]);
  });

  test("a name that looks like HTML is text", async () => {
    const name = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    await someCategory(name);
    await using opened = await openConsole(browser, `${petstore.http}/#/categories`, { width: 1360 });
    const { page } = opened; // what it runs or loads beside its own is a fault
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    const id = await someCategory(name);
    await row(page, id).getByRole("rowheader", { name }).waitFor();
    await page.getByLabel("Latest events").getByText(`Category ${id} ${name}`).waitFor();
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByLabel("The answer", { exact: true }).getByText(JSON.stringify(name)).first().waitFor();
    expect(await page.locator("main img, script:not([src])").count()).toBe(0);
  });

  test("an order that can't be placed says why, where, and what to do", async () => {
    const id = await somePet();
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/orders`);
    const { page } = opened;
    await press(page, "Place an order");
    await field(page, "Pet").fill("x");
    await press(page, "Place order");
    expect(await page.locator("#field-petId-error").textContent()).toBe("must be an integer");
    await field(page, "Pet").fill(`${id}`);
    await press(page, "Place order");
    await page.getByText(`Pet ${id} is not available now. Order it when its status is available again.`).waitFor();
    await field(page, "Pet").fill("999999");
    await press(page, "Place order");
    await page.getByText(/There is no pet 999999|999999/).waitFor();
    await page.keyboard.press("Escape");
    expect(await dialog(page).count()).toBe(0);
  });

  test("a date that is half typed is told of, and not left out", async () => {
    const id = await somePet();
    await using opened = await openConsole(browser, `${petstore.http}/#/orders?pet=${id}`);
    const { page } = opened;
    await press(page, "Place an order");
    await field(page, "Pet").fill(`${id}`);
    await field(page, "Ship date").focus();
    await page.keyboard.type("0506"); // its day and month
    await press(page, "Place order");
    await page.locator("#field-shipDate-error", { hasText: "must be a whole date and time" }).waitFor();
    await page.locator("#field-shipDate:focus").waitFor();
    await field(page, "Ship date").fill("2040-06-05T12:00");
    await press(page, "Place order");
    await page.getByRole("row", { name: /05\/06\/2040/ }).waitFor();
  });

  test("the answer to a form that was closed says what came of it, and closes no other one", async () => {
    const id = await somePet("Daisy");
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    const notice = (text: string) => page.locator(".notices").getByText(text).waitFor();
    /** What is asked by an RPC is answered when it is said. */
    const hold = async (rpc: string) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const asked = page.waitForRequest(`**/${rpc}`);
      await page.route(`**/${rpc}`, (route) => promise.then(() => route.continue()));
      return { asked, resolve };
    };
    const updated = await hold("UpdatePet");
    await row(page, id).getByRole("button", { name: "Edit" }).click();
    await field(page, "Name").fill("Maisie");
    await press(page, "Save");
    await updated.asked;
    await press(page, "Never mind");
    await row(page, id).getByRole("button", { name: "Order" }).click();
    await field(page, "Quantity").fill("7");
    updated.resolve();
    await notice(`Pet ${id} is changed.`);
    expect(await field(page, "Quantity").inputValue()).toBe("7");

    const ordered = await hold("CreateOrder");
    await press(page, "Place order");
    await ordered.asked;
    await press(page, "Never mind");
    const deleted = await hold("DeletePet");
    await row(page, id).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
    await deleted.asked;
    await press(page, "Never mind");
    await row(page, id).getByRole("button", { name: "Edit" }).click();
    await field(page, "Name").fill("Gracie");
    ordered.resolve();
    await notice(`Order Daisy: Pet ${id} is not available now. Order it when its status is available again.`);
    deleted.resolve();
    await notice(`Delete pet ${id}: `);
    expect(await field(page, "Name").inputValue()).toBe("Gracie");
  });

  test("an order is placed, fulfilled, and the stock filled up again", async () => {
    const id = await somePet("Bella");
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Order" }).click();
    await press(page, "Place order");
    await row(page, id).getByText("pending").waitFor();

    await page.goto(`${petstore.http}/#/orders?pet=${id}`);
    const order = page.getByRole("row", { name: /Bella/ });
    await order.getByText("open", { exact: true }).waitFor();
    await order.getByRole("button", { name: "Complete" }).click();
    await press(page, "Complete");
    await order.getByText("complete", { exact: true }).waitFor();
    expect(await order.getByRole("button").count()).toBe(0);

    await page.goto(`${petstore.http}/#/inventory?pet=${id}`);
    await row(page, id).getByText("sold").waitFor();
    await row(page, id).getByRole("button").click();
    await field(page, "Quantity").fill("10");
    await press(page, "Set stock");
    await row(page, id).getByText("available").waitFor();
    expect(await row(page, id).locator("td.number").last().textContent()).toBe("10");
  });

  test("an open order is cancelled", async () => {
    const id = await somePet("Luna");
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/orders?pet=${id}`);
    const { page } = opened;
    await page.getByRole("row", { name: /Luna/ }).getByRole("button", { name: "Cancel" }).click();
    await press(page, "Cancel the order");
    await page.getByText("No order matches.").waitFor();
  });

  test("who changes what somebody else has changed meanwhile is told, and chooses", async () => {
    const id = await somePet("Max");
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Edit" }).click();
    await field(page, "Name").fill("Maximilian");
    await send("PATCH", `/pets/${id}`, { name: "Moritz" });
    await press(page, "Save");
    await page.getByText("Somebody changed it meanwhile. Theirs: Name “Moritz”.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await press(page, "Take theirs");
    expect(await field(page, "Name").inputValue()).toBe("Moritz");
    await field(page, "Name").fill("Max und Moritz");
    await press(page, "Save");
    await row(page, id).locator(".named", { hasText: "Max und Moritz" }).waitFor();
  });

  test("what others need is not deleted, and the rest is", async () => {
    const id = await somePet("Coco");
    const categoryId = await someCategory("empty");
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
    await page.getByText("PET_HAS_OPEN_ORDERS").waitFor();
    await press(page, "Never mind");

    await page.goto(`${petstore.http}/#/categories?id=${categoryId}`);
    await row(page, categoryId).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
    await page.getByText("No category matches.").waitFor();
    // The row is gone, and with it what had the focus.
    await page.locator("h1:focus").waitFor();
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
    await page.getByText("must be an integer").waitFor();
    expect([await id.inputValue(), page.url().includes("id=")]).toEqual(["7x", false]);
    await enter(`${ids[7]}`);
    await page.getByText("must be an integer").waitFor({ state: "detached" });
    expect(page.url()).toContain(`id=${ids[7]}`);
    await enter("x");
    await page.getByText("must be an integer").waitFor();
    await page.evaluate(`location.hash = "#/pets?category=${categoryId}&id=${ids[8]}"`);
    await page.getByText("must be an integer").waitFor({ state: "detached" });
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
    expect(await form.locator("pre").textContent()).toContain("petstore.categories.listCategories({ limit: 25 })");
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
      await send("POST", "/store/orders", { petId: await somePet() });
      await using opened = await openConsole(browser, `${petstore.http}/#/${view}`, { width, scheme });
      const { page } = opened;
      if (view !== "requests") await page.locator("table[aria-busy=false] tbody tr").first().waitFor();
      expect(await axeFindings(page)).toEqual([]);
      // Nothing is cut off, and nothing has to be shifted to be read.
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      // Of the navigation nothing is out of sight, nor of what was asked.
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll(".side ul, .requests ol")].filter((each) => each.scrollWidth > each.clientWidth),
      );
      expect(cut).toEqual([]);
    });
  });
});
