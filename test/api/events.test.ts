/** GET /events of the real processes: what readers of others make of it, and what they miss when processes go. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { EventSource } from "eventsource";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChromium } from "../harness/chromium.ts";
import { chromiumMissing } from "../harness/chromium-program.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { checkAgainstDocument } from "./openapi-validator.ts";

const timeout = 120_000;
let petstore: Petstore;
let base: string;
beforeAll(async () => {
  petstore = await startPetstore({ replicas: 1 });
  base = petstore.http;
}, timeout);
afterAll(() => petstore?.stop(), timeout);

async function post<T>(path: string, body: object): Promise<T> {
  const answer = await fetch(base + path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  expect(answer.status).toBe(201);
  return (await answer.json()) as T;
}
const makeCategory = (name: string) => post<{ id: number }>("/categories", { name });

test(
  "by curl: an order, and all that follows from it, each record as GET shows it",
  async () => {
    const { id: categoryId } = await makeCategory("dogs");
    const document = await (await fetch(`${base}/openapi.json`)).json();
    const curl = spawn("curl", ["-sNi", `${base}/events`], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    curl.stdout.setEncoding("utf8").on("data", (more) => {
      text += more;
    });
    const until = async (what: RegExp) => {
      while (!what.test(text)) await once(curl.stdout, "data");
    };
    await until(/^id: \S+\n\n/m);
    const { id: petId } = await post<{ id: number }>("/pets", { name: "Rex", categoryId });
    const order = await post<{ id: number }>("/store/orders", { petId });
    await until(/petstore\.pet\.updated\.v1.*"status":"pending"\}\}\n\n/);
    await until(/petstore\.order\.created\.v1.*\n\n/);
    await until(/petstore\.inventory\.updated\.v1.*\n\n/);
    curl.kill();
    const told = [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data = ""]) => ({
      event,
      ...JSON.parse(data),
    }));
    const [head = "", body = ""] = text.split(/\r\n\r\n([\s\S]*)/);
    const fields = head.split("\r\n").slice(1);
    const headers = new Headers(
      fields.map((field): [string, string] => /^(.*?): (.*)$/.exec(field)?.slice(1) as never),
    );
    checkAgainstDocument(document, { method: "GET", target: "/events" }, { status: 200, headers, text: body });
    for (const type of ["pet.created", "inventory.created", "inventory.updated", "order.created", "pet.updated"])
      expect(told.map(({ event }) => event)).toContain(`petstore.${type}.v1`);
    for (const [path, event] of [
      [`/pets/${petId}`, "petstore.pet.updated.v1"],
      [`/store/orders/${order.id}`, "petstore.order.created.v1"],
    ]) {
      const shown = await fetch(base + path);
      const last = told.findLast((one) => one.event === event);
      expect([last.data, last.etag, last.subject]).toEqual([
        await shown.json(),
        shown.headers.get("etag"),
        `${path?.split("/").at(-1)}`,
      ]);
    }
  },
  timeout,
);

test(
  "a snapshot has all that is there, and says when it is told",
  async () => {
    const { stdout } = await new Promise<{ stdout: string }>((resolve) => {
      const curl = execFile(
        "curl",
        ["-sN", "-H", "Accept: application/x-ndjson", `${base}/events?types=category&snapshot=true`],
        (_error, stdout) => resolve({ stdout }),
      );
      let text = "";
      curl.stdout?.on("data", (more) => {
        text += more;
        if (text.includes("petstore.synced.v1")) curl.kill();
      });
    });
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const present = lines.filter(({ event }) => event === "petstore.category.present.v1");
    const listed = await (await fetch(`${base}/categories?orderBy=id`)).json();
    expect(present.map(({ data }) => data.data)).toEqual(listed);
    expect(lines.at(-1).event).toBe("petstore.synced.v1");
  },
  timeout,
);

test("node finds nothing wrong with what is listened for on an answer", () => {
  expect(petstore.logs("gateway")).not.toContain("MaxListenersExceededWarning");
});

/**
 * Makes categories before and after a process is killed, and gives their names. Who sees them has `seen` the first before the
 * kill: with no event it would know of no place to go on from.
 */
async function categoriesAround(
  process: "gateway" | "category",
  signal: NodeJS.Signals,
  seen: () => unknown,
): Promise<string[]> {
  const names = (part: string) => [1, 2, 3].map((i) => `${signal} of ${process}, ${part} ${i}`);
  for (const [i, name] of names("before").entries()) {
    await makeCategory(name);
    if (i === 0) await expect.poll(seen, { timeout }).toContain(name);
  }
  await petstore.kill(process, signal);
  await petstore.start(process);
  for (const name of names("after")) {
    await expect
      .poll(
        () =>
          fetch(`${base}/readyz`).then(
            (answer) => answer.text(),
            () => "",
          ),
        { timeout },
      )
      .toContain('"failing":[]');
    await makeCategory(name);
  }
  return [...names("before"), ...names("after")];
}
const kills = [
  ["gateway", "SIGKILL"],
  ["gateway", "SIGTERM"],
  ["category", "SIGKILL"],
  ["category", "SIGTERM"],
] as const;

/**
 * Follows events as a page does, also in one: an EventSource comes back by itself where a connection is lost, and gives up
 * at an error, such as 503 while a service starts.
 */
function follow(Source: typeof EventSource, address: string, seen: string[]): Promise<void> {
  return new Promise((resolve) => {
    let last = "";
    const open = () => {
      const source = new Source(last === "" ? address : `${address}&lastEventId=${last}`);
      source.addEventListener("open", () => resolve());
      source.addEventListener("petstore.category.created.v1", ({ data, lastEventId }) => {
        last = lastEventId;
        seen.push(JSON.parse(data).data.name);
      });
      source.addEventListener("error", () => source.readyState === 2 && setTimeout(open, 1000));
    };
    open();
  });
}

describe("an EventSource in Node", () => {
  const sources: EventSource[] = [];
  class Noted extends EventSource {
    constructor(address: string | URL) {
      super(address);
      sources.push(this);
    }
  }
  afterAll(() => {
    for (const source of sources) source.close();
  });

  test.each(kills)(
    "misses nothing when %s gets %s",
    async (process, signal) => {
      const seen: string[] = [];
      await follow(Noted, `${base}/events?types=category`, seen);
      const made = await categoriesAround(process, signal, () => seen);
      await expect.poll(() => [...new Set(seen)], { timeout }).toEqual(made);
      for (const source of sources) source.close();
    },
    timeout,
  );
});

describe.skipIf(chromiumMissing)("an EventSource in Chromium", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  }, timeout);
  afterAll(() => browser?.close());

  test.each(kills)(
    "misses nothing when %s gets %s",
    async (process, signal) => {
      const page = await browser.newPage();
      await page.goto(`${base}/healthz`);
      await page.evaluate(`globalThis.seen = []; (${follow})(EventSource, "/events?types=category", seen)`);
      const seen = () => page.evaluate("[...new Set(seen)]");
      const made = await categoriesAround(process, signal, seen);
      await expect.poll(seen, { timeout }).toEqual(made);
      await page.close();
    },
    timeout,
  );
});
