/** The console where the petstore asks who calls. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createKey, formatKeyFile, type KeyFile, noKeys, revokeKey } from "../../packages/rpc/auth/key-file.ts";
import { axeFindings, startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { openConsole } from "./open.ts";

const owner = createKey(noKeys, { name: "owner", scopes: ["*"], expires: undefined });
const reader = createKey(owner.content, { name: "reader", scopes: ["pets:read"], expires: undefined });
const clerk = createKey(reader.content, { name: "clerk", scopes: ["pets:read", "orders:read"], expires: undefined });
const leaver = createKey(clerk.content, { name: "leaver", scopes: ["*"], expires: undefined });

describe.skipIf(chromiumMissing)("the console", { timeout: 120_000 }, () => {
  let directory: string;
  let petstore: Petstore;
  let browser: Browser;
  const write = (content: KeyFile) => writeFile(join(directory, "keys.json"), formatKeyFile(content));
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "console-"));
    const file = join(directory, "keys.json");
    await write(leaver.content);
    const env = { AUTH_MODE: "keys", API_KEYS_FILE: file };
    [petstore, browser] = await Promise.all([startPetstore({ env }), startChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await petstore?.stop();
    await rm(directory, { recursive: true });
  });

  const asked = (page: Page) => page.getByRole("dialog", { name: "Sign in" });
  async function signIn(page: Page, text: string): Promise<void> {
    await asked(page).getByLabel("API key or access token").fill(text);
    await asked(page).getByRole("button", { name: "Sign in" }).click();
  }
  const go = (page: Page, view: string) => page.getByRole("link", { name: view }).first().click();

  /** By HTTP, as the owner. */
  async function send(path: string, body: object): Promise<number> {
    const headers = { "content-type": "application/json", authorization: `Bearer ${owner.key}` };
    const response = await fetch(petstore.http + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBe(201);
    return ((await response.json()) as { id: number }).id;
  }

  test("asks who calls, keeps the key for the tab alone, and shows it nowhere", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await asked(page).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await signIn(page, "not a key");
    await asked(page).getByText("Enter an API key or a token; neither has spaces.").waitFor();
    await signIn(page, "psk_mistyped");
    await asked(page).getByText("What you signed in with is not valid here, or not any more.").waitFor();
    await signIn(page, owner.key);
    await page.getByText("There are no pets yet.").waitFor();
    expect(await asked(page).count()).toBe(0);

    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByRole("tab", { name: "curl", exact: true }).click();
    await page.getByText('-H "Authorization: Bearer $CREDENTIAL"').waitFor();
    expect(await page.content()).not.toContain(owner.key);
    expect(page.url()).not.toContain("psk_");
    const kept = await page.evaluate(() => [
      Object.values(sessionStorage),
      Object.values(localStorage),
      document.cookie,
    ]);
    expect(kept).toEqual([[owner.key], expect.not.arrayContaining([owner.key]), ""]);

    await page.reload();
    await page.getByRole("link", { name: "Pets" }).click();
    await page.getByText("There are no pets yet.").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await asked(page).waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    // Processes log whose request it was, never by which credential.
    expect(petstore.logs()).not.toContain(owner.key);
  });

  test("serves a browser that lets it keep nothing, as long as the page is open", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await page.addInitScript(() => {
      const get = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
      for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(globalThis, name, { get });
    });
    await page.reload();
    await signIn(page, owner.key);
    await page.getByText("There are no pets yet.").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await asked(page).waitFor();
  });

  test("asks again when the key ends while it follows what happens", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await signIn(page, leaver.key);
    await page.getByText("There are no pets yet.").waitFor();
    await page.getByText("Live", { exact: true }).first().waitFor();
    await write(revokeKey(leaver.content, leaver.id));
    await page.getByRole("dialog", { name: "Sign in" }).waitFor();
  });

  test("says what a caller may not do", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await signIn(page, reader.key);
    await page.getByText("There are no pets yet.").waitFor();
    await go(page, "Categories");
    await page.getByRole("alert").getByText("PERMISSION_DENIED").waitFor();
    await page.getByRole("alert").getByText("categories:read").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign in with another credential" }).click();
    await asked(page).waitFor();
  });

  test("tells a caller what happens to what it may read, and says what that leaves out", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    await signIn(page, clerk.key);
    await page.locator(".live", { hasText: /^Live$/ }).waitFor();
    const left = "You may not see categories and stock (needs categories:read and inventory:read).";
    await page.getByText(left).waitFor();
    const petId = await send("/pets", { name: "Ajax", categoryId: await send("/categories", { name: "Hounds" }) });
    await page.getByRole("row", { name: /Ajax/ }).waitFor();
    const orderId = await send("/store/orders", { petId });
    await page.getByRole("row", { name: /Ajax/ }).getByText("pending").waitFor();
    await go(page, "Events");
    await page.getByText(`Order ${orderId} for pet ${petId}: open`).first().waitFor();
    expect(await page.getByLabel("Kind").locator("option").allTextContents()).toEqual(["any", "pet", "order"]);
    const command = `curl -N '${petstore.http}/events?types=pet,order' -H "Authorization: Bearer $CREDENTIAL"`;
    expect(await page.locator(".tools code").textContent()).toBe(command);
    expect(await page.getByRole("link", { name: /no access/ }).allTextContents()).toEqual([
      "Categories no access",
      "Inventory no access",
    ]);
    expect(await axeFindings(page)).toEqual([]);
  });

  test("who did not answer may still sign in, and is then not led to signing out", async () => {
    await using opened = await openConsole(browser, petstore.http, { width: 360 });
    const { page } = opened;
    await asked(page).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("alert").getByRole("button", { name: "Sign in" }).waitFor();
    await page.getByRole("navigation").getByRole("button", { name: "Sign in" }).click();
    expect(await page.locator(":focus").getAttribute("id")).toBe("field-credential");
    await signIn(page, clerk.key);
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await page.locator("h1:focus").waitFor();
    await page.getByRole("link", { name: "Inventory no access" }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    expect(await axeFindings(page)).toEqual([]);
  });

  test("what a caller was shown, and had begun, is gone with the caller", async () => {
    await using opened = await openConsole(browser, petstore.http);
    const { page } = opened;
    const isLive = page.locator(".live", { hasText: /^Live$/ });
    await signIn(page, owner.key);
    await isLive.waitFor();
    // A name that is told to the owner, but not before the next caller is there.
    const next = Promise.withResolvers<void>();
    // By ids, the first of its fields that are there.
    const asksForNames = (request: Request) =>
      request.url().endsWith("/ListCategories") && request.postDataBuffer()?.[0] === (3 << 3) + 2;
    await page.route("**/ListCategories", async (route) => {
      if (!asksForNames(route.request())) return route.continue();
      const response = await route.fetch();
      await next.promise;
      await route.fulfill({ response });
    });
    const categoryId = await send("/categories", { name: "Racehorses" });
    const petId = await send("/pets", { name: "Secretariat", categoryId });
    await send("/store/orders", { petId });
    await page
      .getByRole("row", { name: /Secretariat/ })
      .getByText("pending")
      .waitFor();
    await go(page, "Inventory");
    await page.getByRole("row", { name: /Secretariat/ }).waitFor();
    await go(page, "Categories");
    await page.getByRole("row", { name: /Racehorses/ }).waitFor();
    // What is refused when another caller is there is not told to that one.
    await page.route("**/DeleteCategory", (route) => next.promise.then(() => route.continue()));
    const asksToDelete = page.waitForRequest("**/DeleteCategory");
    await page.getByRole("button", { name: "Delete Racehorses" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await asksToDelete;
    await page.getByRole("button", { name: "Never mind" }).click();
    await page.getByRole("button", { name: "New category" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Drafted");
    // The owner's key ends while the owner writes, and somebody else goes on.
    await page.route("**/CreateCategory", (route) =>
      route.fulfill({ status: 401, contentType: "application/json", body: '{"code":"unauthenticated"}' }),
    );
    await page.getByRole("button", { name: "Create category" }).click();
    await signIn(page, reader.key);
    await isLive.waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    const answered = [
      page.waitForResponse((response) => asksForNames(response.request())),
      page.waitForResponse("**/DeleteCategory"),
    ];
    next.resolve();
    await Promise.all(answered);

    for (const view of ["Categories", "Orders", "Inventory", "Events", "Requests", "Pets"]) {
      await go(page, view);
      await page.getByRole("heading", { name: view, level: 1 }).waitFor();
      if (view === "Pets") await page.getByRole("row", { name: /Secretariat/ }).waitFor();
      const html = await page.content();
      const found = ["Racehorses", "Drafted", view === "Pets" ? "" : "Secretariat"].filter(
        (name) => name && html.includes(name),
      );
      expect([view, found]).toEqual([view, []]);
    }
    await page.getByRole("button", { name: "Sign out" }).click();
    await asked(page).waitFor();
    expect(await page.content()).not.toContain("Secretariat");
  });
});
