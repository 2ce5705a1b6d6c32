/** The console beside a terminal: what others do is to be seen without a hand being moved. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { openConsole, row } from "./open.ts";

describe.skipIf(chromiumMissing)("the console", { timeout: 120_000 }, () => {
  let petstore: Petstore;
  let browser: Browser;
  beforeAll(async () => {
    [petstore, browser] = await Promise.all([startPetstore(), startChromium()]);
    for (const name of ["Dogs", "Cats", "Rabbits", "Parrots"]) await curl("POST", "/categories", { name });
    for (const [i, name] of names.entries()) await curl("POST", "/pets", { name, categoryId: 1 + ((i * 7) % 4) });
    for (const petId of [2, 5, 9]) await curl("POST", "/store/orders", { petId, complete: petId === 5 });
  });
  afterAll(async () => {
    await browser?.close();
    await petstore?.stop();
  });

  const names = ["Rex", "Bella", "Luna", "Max", "Charlie", "Coco", "Milo", "Nala", "Oscar", "Ruby", "Simba", "Tilly"];

  async function curl(method: string, path: string, body: object): Promise<{ id: number }> {
    const args = ["-sSf", "-X", method, petstore.http + path, "-H", "Content-Type: application/json"];
    const { stdout } = await promisify(execFile)("curl", [...args, "-d", JSON.stringify(body)]);
    return JSON.parse(stdout);
  }

  const isLive = (page: Page) => page.locator(".live", { hasText: /^Live$/ }).waitFor();
  const status = (page: Page, id: number, word: string) => row(page, id).getByText(word, { exact: true }).waitFor();

  test("an order by curl turns its pet pending, there and in the list of events", async () => {
    await using opened = await openConsole(browser, petstore.http, { height: 760 });
    const { page } = opened;
    await isLive(page);
    await status(page, 12, "available");
    const { id } = await curl("POST", "/store/orders", { petId: 12 });
    await status(page, 12, "pending");
    await page.getByLabel("Latest events").getByText(`Order ${id} for pet 12: open`).first().waitFor();
    // Whoever can't see it hears it.
    await page.getByRole("status").filter({ hasText: "Pet 12 Tilly: pending" }).waitFor();
    await curl("PATCH", `/store/orders/${id}`, { complete: true });
    await status(page, 12, "sold");
    await curl("PUT", "/store/inventory/12", { quantity: 10 });
    await status(page, 12, "available");
    const { id: added } = await curl("POST", "/pets", { name: "Whiskers", categoryId: 2 });
    await status(page, added, "available");
    await curl("POST", "/store/orders", { petId: 11 });
    await status(page, 11, "pending");
    expect(await axeFindings(page)).toEqual([]);
    // The one that the README shows.
    const picture = await page.screenshot({ type: "png" });
    expect(picture.length).toBeLessThan(200_000);
    if (process.env.CONSOLE_PICTURE) await writeFile(process.env.CONSOLE_PICTURE, picture);
  });

  test("a list that is filtered gains and loses records as they change", async () => {
    const { id } = await curl("POST", "/pets", { name: "Filou", categoryId: 1 });
    await using opened = await openConsole(browser, `${petstore.http}/#/pets?status=pending`);
    const { page } = opened;
    await isLive(page);
    expect(await row(page, id).count()).toBe(0);
    const order = await curl("POST", "/store/orders", { petId: id });
    await status(page, id, "pending");
    await curl("PATCH", `/store/orders/${order.id}`, { complete: true });
    await row(page, id).waitFor({ state: "detached" });
  });

  test("nothing is missed while the gateway is away, and the page says that it is", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await isLive(page);
    await petstore.kill("gateway");
    await page.locator(".live", { hasText: /Reconnecting|Offline/ }).waitFor();
    await petstore
      .client(PetService)
      .updatePet({ petId: 3n, pet: { name: "Lunette" }, updateMask: { paths: ["name"] } });
    await petstore.start("gateway");
    await isLive(page);
    await row(page, 3).locator(".named", { hasText: "Lunette" }).waitFor();
    await page.getByLabel("Latest events").getByText("Pet 3 Lunette: available").first().waitFor();
  });

  test("a stream that says nothing for 45 s is not live, and another one goes on where it ended", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await page.clock.install();
    await page.reload();
    await isLive(page);
    const places: (string | null)[] = [];
    const isSeen = Promise.withResolvers<void>();
    await page.route(/\/events\?/, async (route) => {
      places.push(new URL(route.request().url()).searchParams.get("lastEventId"));
      await isSeen.promise;
      await route.continue();
    });
    await page.clock.fastForward(45_000);
    await page.locator(".live", { hasText: "Reconnecting" }).waitFor();
    isSeen.resolve();
    await isLive(page);
    expect(places).toEqual([expect.stringMatching(/./)]);
  });

  test("a tab holds one connection, and none while nobody looks", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    const streams: string[] = [];
    page.on("request", (request) => new URL(request.url()).pathname === "/events" && streams.push(request.url()));
    await isLive(page);
    const look = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await look(true);
    await page.locator(".live", { hasText: "Paused" }).waitFor();
    await curl("POST", "/store/orders", { petId: 1 });
    await look(false);
    await isLive(page);
    await status(page, 1, "pending");
    expect(streams.length).toBeGreaterThan(0);
    expect(streams.length).toBeLessThanOrEqual(2);
  });

  test.each([
    { width: 1280, scheme: "light" },
    { width: 1280, scheme: "dark" },
    { width: 360, scheme: "light" },
  ] as const)("everybody can use the events: $width $scheme", async (screen) => {
    await using opened = await openConsole(browser, `${petstore.http}/#/events`, screen);
    const { page } = opened;
    await isLive(page);
    const { id } = await curl("POST", "/categories", { name: "Fish" });
    await page.getByText(`Category ${id} Fish`).waitFor();
    expect(await page.locator(".tools code").textContent()).toBe(`curl -N ${petstore.http}/events`);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Hold still" }).click();
    await curl("POST", "/categories", { name: "Snakes" });
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText("Snakes").waitFor();
    await page.getByLabel("Kind").selectOption("pet");
    await page.getByText("Snakes").waitFor({ state: "detached" });
  });
});
