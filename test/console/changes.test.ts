/** What people change in the console, and what they are told of it. */
import { fromBinary } from "@bufbuild/protobuf";
import type { Browser, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CreateOrderRequestSchema } from "#proto/petstore/order/v1/order_service_pb.ts";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { dialog, elsewhere, field, openConsole, press, row } from "./open.ts";

/** The idempotency keys of the orders that the page sends from now on. */
function keysOf(page: Page): ReadonlySet<string> {
  const keys = new Set<string>();
  page.on("request", (request) => {
    if (!request.url().endsWith("/CreateOrder")) return;
    const { requestId = "" } = fromBinary(CreateOrderRequestSchema, request.postDataBuffer() ?? new Uint8Array());
    keys.add(requestId);
  });
  return keys;
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
  const { send, someCategory, somePet } = elsewhere(() => petstore.http);

  test("shows what the petstore says at the field that it is about", async () => {
    await someCategory();
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await press(page, "New pet");
    await press(page, "Create pet");
    await page.locator("#field-name-error").waitFor();
    expect(await page.locator("#field-name-error").textContent()).toBe("Give the pet a name.");
    const category = page.locator("#field-categoryId-error");
    expect(await category.textContent()).toBe("Choose the category that the pet belongs to.");
    // Whoever can't see it hears it: the focus is in the first field, which names its error.
    const focused = page.locator("#field-name:focus"); // it comes there when the errors have been drawn
    expect(await focused.getAttribute("aria-describedby")).toBe("field-name-error");
    expect(await axeFindings(page)).toEqual([]);
  });

  test("an order that can't be placed says why, where, and what to do", async () => {
    const id = await somePet();
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/orders`);
    const { page } = opened;
    await press(page, "Place an order");
    await field(page, "Pet").fill("nobody is called so");
    await press(page, "Place order");
    await page
      .locator("#field-petId-error", { hasText: "No available pet has this name: choose one of the list." })
      .waitFor();
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
    await page
      .locator("#field-shipDate-error", { hasText: "Ship date must be a whole date and time, or empty." })
      .waitFor();
    await page.locator("#field-shipDate:focus").waitFor();
    await field(page, "Ship date").fill("2040-06-05T12:00");
    await press(page, "Place order");
    await page.getByRole("button", { name: "5 Jun 2040, 12:00" }).click();
    await field(page, "Ship date").fill("2041-06-05T12:00");
    await press(page, "Save");
    await page.getByRole("button", { name: "5 Jun 2041, 12:00" }).click();
    await field(page, "Ship date").fill("");
    await press(page, "Save");
    await page.getByRole("button", { name: "Set it (the ship date" }).waitFor();
  });

  test("an order picks its pet by name among those that are available", async () => {
    const [one, other] = [await somePet("Quentin"), await somePet("quentin")];
    const sold = await somePet("Quentina");
    await send("PATCH", `/pets/${sold}`, { status: "sold" });
    const [numbered, newest] = [await somePet(`Quentin (${one})`), await somePet("Zoe")];
    await using opened = await openConsole(browser, `${petstore.http}/#/orders`);
    const { page } = opened;
    const options = page.locator("dialog option");
    await press(page, "Place an order");
    await page.locator(`option[value="Zoe (${newest})"]`).waitFor({ state: "attached" });
    await field(page, "Pet").fill("quentin");
    await page.locator(`option[value="Zoe (${newest})"]`).waitFor({ state: "detached" });
    expect(await options.evaluateAll((all) => all.map((each) => each.getAttribute("value")))).toEqual([
      `Quentin (${one})`,
      `quentin (${other})`,
      `Quentin (${one}) (${numbered})`,
    ]);
    await press(page, "Place order");
    await page.getByText("Several have this name: choose one of the list.").waitFor();
    await field(page, "Pet").fill(`Quentin (${one})`);
    await press(page, "Place order");
    await dialog(page).waitFor({ state: "detached" });
    await page.goto(`${petstore.http}/#/orders?pet=${one}`);
    await page.getByText("1 shown").waitFor();
  });

  test("stock is counted by plus and minus, beside what open orders hold", async () => {
    const id = await somePet("Tally");
    await send("PUT", `/store/inventory/${id}`, { quantity: 5 });
    await send("POST", "/store/orders", { petId: id, quantity: 3 });
    await using opened = await openConsole(browser, `${petstore.http}/#/inventory?pet=${id}`);
    const { page } = opened;
    const count = async (act: () => Promise<void>, expected: string) => {
      await row(page, id).getByRole("button", { name: "Set stock" }).click();
      await dialog(page).getByText("Open orders hold 3.").waitFor();
      expect(await dialog(page).getByRole("link").count()).toBe(0); // it would leave the form
      await act();
      await press(page, "Set stock");
      await page.locator("td.number", { hasText: expected }).waitFor();
    };
    await count(() => press(page, "One less"), "1");
    await count(() => press(page, "One more"), "2");
    await count(async () => {
      await field(page, "Quantity").fill("+9");
      await press(page, "One more");
    }, "12");
    // Of somebody else's delivery meanwhile this one is no part.
    await row(page, id).getByRole("button", { name: "Set stock" }).click();
    await send("PUT", `/store/inventory/${id}`, { quantity: 30 });
    await field(page, "Quantity").fill("-2");
    await press(page, "Set stock");
    await page
      .getByText("Somebody changed it meanwhile. Theirs: Quantity “30”. Send yours again, or take theirs.")
      .waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await press(page, "Set stock");
    await page.locator("td.number", { hasText: "28" }).waitFor();
    await row(page, id).getByRole("button", { name: "Set stock" }).click();
    await field(page, "Quantity").fill("");
    await press(page, "Set stock");
    await page.getByText("Say how many there are.").waitFor();
  });

  test("the answer to a form that was closed says what came of it, and closes no other one", async () => {
    const id = await somePet("Daisy");
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

    await send("POST", "/store/orders", { petId: id });
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
    await notice("Delete Maisie: ");
    expect(await field(page, "Name").inputValue()).toBe("Gracie");
  });

  test("an order is placed, fulfilled, and the stock filled up again", async () => {
    const id = await somePet("Bella");
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Order" }).click();
    await press(page, "Place order");
    await row(page, id).getByText("pending").waitFor();
    // What can't be ordered is not offered, and the focus stays where it was.
    expect(await row(page, id).getByRole("button", { name: "Order" }).count()).toBe(0);
    await row(page, id).locator(":focus").waitFor();

    await page.goto(`${petstore.http}/#/orders?pet=${id}`);
    const order = page.getByRole("row", { name: /Bella/ });
    await order.getByText("open", { exact: true }).waitFor();
    await order.getByRole("button", { name: "Complete" }).click();
    expect(await dialog(page).locator(":focus").textContent()).toBe("Complete");
    await page.keyboard.press("Enter");
    await order.getByText("complete", { exact: true }).waitFor();
    expect(await order.getByRole("button", { name: /Complete|Cancel/ }).count()).toBe(0);

    await page.goto(`${petstore.http}/#/inventory?pet=${id}`);
    await row(page, id).getByText("sold").waitFor();
    await row(page, id).getByRole("button").click();
    await field(page, "Quantity").fill("10");
    await press(page, "Set stock");
    await row(page, id).getByText("available").waitFor();
    expect(await row(page, id).locator("td.number").last().textContent()).toBe("10");

    // Nor is the focus lost when somebody else takes the last one.
    await page.goto(`${petstore.http}/#/pets?id=${id}`);
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    await row(page, id).getByRole("button", { name: "Order" }).focus();
    await send("POST", "/store/orders", { petId: id, quantity: 10 });
    await row(page, id).getByText("pending").waitFor();
    await row(page, id).locator(":focus").waitFor();
  });

  test("an order that was refused is placed when there is enough, by the same form", async () => {
    const id = await somePet("Cleo");
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Order" }).click();
    await field(page, "Quantity").fill("5");
    const keys = keysOf(page);
    await press(page, "Place order");
    await page.locator("#field-quantity-error").waitFor();
    await send("PUT", `/store/inventory/${id}`, { quantity: 5 });
    await press(page, "Place order");
    await page.locator(".notices").getByText("is placed.").waitFor();
    await row(page, id).getByText("pending").waitFor();
    expect(keys.size).toBe(2); // under the first one it would be refused for a day
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByRole("button", { name: "CreateOrder failed" }).click();
    await page.getByText("Take another key to create again.").waitFor();
  });

  test("an order whose answer was lost is placed once, however often the form is sent", async () => {
    const id = await somePet("Milo");
    await send("PUT", `/store/inventory/${id}`, { quantity: 5 });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Order" }).click();
    const keys = keysOf(page);
    await page.route("**/CreateOrder", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await press(page, "Place order");
    await dialog(page).getByText("UNREACHABLE").waitFor();
    await page.unroute("**/CreateOrder");
    await press(page, "Place order");
    await page.locator(".notices").getByText("is placed.").waitFor();
    expect(keys.size).toBe(1);
    const orders = await fetch(`${petstore.http}/store/orders?petId=${id}`);
    expect(await orders.json()).toHaveLength(1);
  });

  test("an open order is cancelled", async () => {
    const id = await somePet("Luna");
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/orders?pet=${id}`);
    const { page } = opened;
    await page.getByRole("row", { name: /Luna/ }).getByRole("button", { name: "Cancel" }).click();
    expect(await dialog(page).locator(":focus").textContent()).toBe("Never mind");
    await press(page, "Cancel the order");
    await page.getByText("No order matches.").waitFor();
  });

  test("who changes what somebody else has changed meanwhile is told, and chooses", async () => {
    const categoryId = await someCategory("hounds");
    const { id } = await send("POST", "/pets", { name: "Max", categoryId });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByText("hounds").waitFor();
    await row(page, id).getByRole("button", { name: "Edit" }).click();
    await field(page, "Name").fill("Maximilian");
    await send("PATCH", `/pets/${id}`, { name: "Moritz" });
    await press(page, "Save");
    await page.getByText("Somebody changed it meanwhile. Theirs: Name “Moritz”.").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await press(page, "Take theirs");
    expect(await field(page, "Name").inputValue()).toBe("Moritz");
    await field(page, "Name").fill("Max und Moritz");
    // The pet stays in its category, whatever that is called by now.
    await send("PATCH", `/categories/${categoryId}`, { name: "greyhounds" });
    await press(page, "Save");
    await row(page, id).locator(".named", { hasText: "Max und Moritz" }).waitFor();
  });

  test("what others need is not deleted, and the rest is", async () => {
    const id = await somePet("Coco");
    const [categoryId, last] = [await someCategory("empty"), await someCategory("empty, too")];
    await send("POST", "/store/orders", { petId: id });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?id=${id}`);
    const { page } = opened;
    await row(page, id).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
    await page.getByText("PET_HAS_OPEN_ORDERS").waitFor();
    await press(page, "Never mind");

    await page.goto(`${petstore.http}/#/categories?name=empty`);
    const remove = async (id: number) => {
      await row(page, id).getByRole("button", { name: "Delete" }).click();
      await dialog(page).getByRole("button", { name: "Delete" }).click();
      await row(page, id).waitFor({ state: "detached" });
    };
    // The row is gone, and with it what had the focus.
    await remove(categoryId);
    await row(page, last).locator(":focus").waitFor();
    // What somebody else has changed meanwhile is not deleted unseen.
    const change = async (route: Route) => {
      await send("PATCH", `/categories/${last}`, { description: "changed" });
      await route.continue();
    };
    await page.route("**/DeleteCategory", change, { times: 1 });
    await row(page, last).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
    await dialog(page).getByText("Somebody changed it meanwhile. Look at it in the list, and begin again.").waitFor();
    await press(page, "Never mind");
    await row(page, last).getByText("changed").waitFor();
    await remove(last);
    await page.getByText("No category matches.").waitFor();
    await page.locator("h1:focus").waitFor();
    await page.getByLabel("ID", { exact: true }).fill("none");
    await page.keyboard.press("Enter");
    await page.getByText("ID must be a whole number").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByText("shown").waitFor();
    expect(await page.getByLabel("ID", { exact: true }).inputValue()).toBe("");
    await page.locator("h1:focus").waitFor();
  });
});
