/** `startPetstore`, as a test uses it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type StartOptions, startPetstore, type TestPetstore } from "./index.ts";

const timeout = 120_000;
const DAY_MS = 86_400_000;
const JSON_TYPE = { "content-type": "application/json" };

async function started(options?: StartOptions): Promise<TestPetstore> {
  const petstore = await startPetstore(options);
  onTestFinished(petstore.stop);
  return petstore;
}
const post = async ({ url }: TestPetstore, path: string, body: object, headers = {}) => {
  const answer = await fetch(url + path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { ...JSON_TYPE, ...headers },
  });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
};
const namesIn = async ({ url }: TestPetstore): Promise<string[]> => {
  const pets = (await (await fetch(`${url}/pets`)).json()) as { name: string }[];
  return pets.map(({ name }) => name);
};
const isGone = ({ url }: TestPetstore) =>
  fetch(`${url}/pets`).then(
    () => false,
    () => true,
  );

test("a petstore is there, empty, with a client", { timeout }, async () => {
  const petstore = await started();
  expect(await namesIn(petstore)).toEqual([]);
  const category = await petstore.client.categories.create({ name: "dogs" });
  expect(category.id).toBe(1);
  expect(await post(petstore, "/pets", { name: "Rex", categoryId: 1 })).toMatchObject({ status: 201, body: { id: 1 } });
  expect(await post(petstore, "/store/orders", { petId: 1 })).toMatchObject({ status: 201, body: { id: 1 } });
  expect((await fetch(`${petstore.url}/openapi.json`)).status).toBe(200);
  const ready = await fetch(`${petstore.adminUrl}/readyz`);
  expect(await ready.json()).toEqual({ status: "ready", failing: [] });
});

test("a seed draws the pets, and a reset begins anew", { timeout }, async () => {
  const petstore = await started({ seed: 7, pets: 12 });
  const before = await namesIn(petstore);
  expect(before).toHaveLength(12);
  await post(petstore, "/categories", { name: "unicorns" });
  await petstore.client.pets.delete(12);
  await petstore.reset();
  expect(await namesIn(petstore)).toEqual(before);
  const { body } = await post(petstore, "/categories", { name: "unicorns" });
  expect(body).toMatchObject({ id: 9 });

  await petstore.reset({ seed: 8 });
  const other = await namesIn(petstore);
  expect(other).toHaveLength(12);
  expect(other).not.toEqual(before);
  await petstore.reset();
  expect(await namesIn(petstore)).toEqual(other);
  await petstore.reset({ seed: 7 });
  expect(await namesIn(petstore)).toEqual(before);
});

test("nothing of before a reset is left: ids begin at 1, and what is known of records is forgotten", {
  timeout,
}, async () => {
  const petstore = await started();
  for (let round = 0; round < 3; round++) {
    expect(await post(petstore, "/pets", { name: "Rex", categoryId: 1 })).toMatchObject({ status: 404 });
    expect(await post(petstore, "/categories", { name: "dogs" })).toMatchObject({ body: { id: 1 } });
    expect(await post(petstore, "/pets", { name: "Rex", categoryId: 1 })).toMatchObject({ body: { id: 1 } });
    const key = { "Idempotency-Key": "one" };
    const order = await post(petstore, "/store/orders", { petId: 1 }, key);
    expect(order).toMatchObject({ status: 201, body: { id: 1 } });
    expect(order.headers.get("idempotent-replayed")).toBeNull();
    await petstore.reset();
  }
});

test("a reset ends the streams that watch, and what they saw is no longer known", { timeout }, async () => {
  const petstore = await started();
  await post(petstore, "/categories", { name: "dogs" });
  const events = await fetch(`${petstore.url}/events?snapshot=true`);
  expect(events.status).toBe(200);
  let seen = "";
  const reading = (async () => {
    for await (const part of events.body ?? []) seen += new TextDecoder().decode(part);
  })();
  await expect.poll(() => seen).toContain("dogs");
  await petstore.reset();
  await reading;
  const last = [...seen.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? "";
  const resumed = await fetch(`${petstore.url}/events`, { headers: { "Last-Event-ID": last } });
  expect(await resumed.json()).toMatchObject({ code: "EVENTS_EXPIRED" });
});

test("the clock moves: rates, keys that expire, the sunset", { timeout }, async () => {
  const env = { RATE_LIMIT: "2/h", SUNSET_AT: "2030-06-01", DEPRECATED_AT: "2030-01-01", AFTER_SUNSET: "gone" };
  const petstore = await started({ now: new Date("2030-05-31T12:00:00Z"), env });
  const key = { "Idempotency-Key": "one" };
  const ask = () => post(petstore, "/categories", { name: "dogs" }, key);
  expect(await ask()).toMatchObject({ status: 201 });
  expect((await ask()).headers.get("idempotent-replayed")).toBe("true");
  expect(await ask()).toMatchObject({ status: 429 });
  await petstore.advance(3_600_000);
  expect((await ask()).headers.get("idempotent-replayed")).toBe("true");
  expect((await fetch(`${petstore.url}/pets/1`)).status).toBe(404);
  // Keys are kept for a day, and an hour or two more.
  await petstore.advance(30 * DAY_MS);
  const again = await ask();
  expect(again).toMatchObject({ status: 201, body: { id: 2 } });
  expect(again.headers.get("idempotent-replayed")).toBeNull();
  expect((await fetch(`${petstore.url}/pets/1`)).status).toBe(410);
  expect(new Date(again.headers.get("date") ?? "").getUTCFullYear()).toBeGreaterThan(2000);
});

test("the admin port takes durations and moments, and says what is wrong", { timeout }, async () => {
  const { adminUrl } = await started({ now: new Date("2030-01-01") });
  const ask = async (path: string, body: string) => {
    const answer = await fetch(adminUrl + path, { method: "POST", body });
    return answer.status === 204 ? 204 : ((await answer.json()) as { message: string }).message;
  };
  expect(await ask("/clock", '{"advance":"24h"}')).toBe(204);
  expect(await ask("/clock", '{"now":"2030-01-05T00:00:00Z"}')).toBe(204);
  expect(await ask("/clock", '{"now":"2030-01-02"}')).toMatch(
    /^The clock can only be moved on: it is 2030-01-05T00:00/,
  );
  expect(await ask("/clock", '{"advance":"soon"}')).toMatch(/^advance must be a time/);
  expect(await ask("/clock", '{"advance":"99999d"}')).toBe(204);
  expect(await ask("/clock", "{}")).toMatch(/^Say \{"advance"/);
  expect(await ask("/clock", "{")).toMatch(/^The body is no JSON: /);
  expect(await ask("/clock", "[]")).toBe("The body must be a JSON object.");
  expect(await ask("/reset", '{"sead":1}')).toBe("sead is not known here: there is seed.");
  expect(await ask("/reset", '{"seed":"1"}')).toBe("seed must be a number.");
  expect(await ask("/reset", '{"seed":1.5}')).toMatch(/^seed must be a whole number/);
  expect(await ask("/reset", "")).toBe(204);
});

test("calls fail on demand: before, after, and streams that break", { timeout }, async () => {
  const petstore = await started({ faults: [{ match: "POST /categories", rate: 1, times: 1, code: "UNAVAILABLE" }] });
  const dogs = { name: "dogs" };
  const create = () => post(petstore, "/categories", dogs, { "Idempotency-Key": "one" });
  expect(await create()).toMatchObject({ status: 503, body: { code: "UNAVAILABLE", status: 503 } });
  await petstore.setFaults([
    { match: "POST /categories", rate: 1, times: 1, code: "DEADLINE_EXCEEDED", when: "after" },
  ]);
  expect(await create()).toMatchObject({ status: 504 });
  const replayed = await create();
  expect(replayed).toMatchObject({ status: 201, body: { id: 1 } });
  expect(replayed.headers.get("idempotent-replayed")).toBe("true");

  await petstore.setFaults([{ match: "GET /events", rate: 1, times: 1, cut: 1 }]);
  const events = await (await fetch(`${petstore.url}/events?snapshot=true`)).text();
  expect(events.match(/^event: .*$/gm)?.[0]).toContain("petstore.category");
  expect(events).not.toContain("synced");
  await petstore.setFaults([]);
  await expect(petstore.setFaults([{ match: "*", rate: 2, code: "INTERNAL" }])).rejects.toThrow(
    "Fault 1: rate must be",
  );
});

test("a call can be beyond its rate, and can take longer than its caller gives it", { timeout }, async () => {
  const pets = { match: "GET /pets", rate: 1 };
  await using petstore = await startPetstore({
    env: { RATE_LIMIT: "1000/s" },
    faults: [{ ...pets, times: 1, code: "RATE_LIMITED" }],
  });
  const ask = (headers = {}) => fetch(`${petstore.url}/pets`, { headers });
  const limited = await ask();
  expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "1"]);
  expect(await limited.json()).toMatchObject({ code: "RATE_LIMITED" });
  await petstore.setFaults([{ ...pets, delay: "60s" }]);
  const late = await ask({ "X-Server-Timeout": "1" });
  expect(await late.json()).toMatchObject({ code: "DEADLINE_EXCEEDED", status: 504 });
  await petstore.setFaults([]);
  expect((await ask({ "X-Server-Timeout": "30" })).status).toBe(200);
});

test("what is configured wrongly is said", { timeout }, async () => {
  await expect(startPetstore({ env: { RATE_LIMIT: "often" } })).rejects.toThrow("RATE_LIMIT=often is wrong");
  await expect(startPetstore({ pets: 1e6 })).rejects.toThrow(/There can be 0 to \d+ pets, not 1000000\./);
  await expect(startPetstore({ faults: [{ match: "*", rate: 1 }] })).rejects.toThrow("Fault 1: it has no effect");
  await expect(startPetstore({ seed: 0.5 })).rejects.toThrow("The seed must be a whole number");
});

test("twenty at once know nothing of each other", { timeout }, async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => started()));
  await Promise.all(all.map((one, i) => post(one, "/categories", { name: `category ${i}` })));
  for (const [i, { client }] of all.entries()) {
    const categories = await Array.fromAsync(client.categories.list());
    expect(categories.map(({ name }) => name)).toEqual([`category ${i}`]);
  }
});

test("stop ends it, and so does the end of a block", { timeout }, async () => {
  const first = await startPetstore();
  await first.stop();
  await first.stop();
  expect(await isGone(first)).toBe(true);
  let second: TestPetstore;
  {
    await using petstore = await startPetstore();
    second = petstore;
  }
  expect(await isGone(second)).toBe(true);
});

test.each(["SIGKILL", "SIGTERM"] as const)(
  "it ends with the process that started it, by %s",
  { timeout },
  async (signal) => {
    const script = `import { startPetstore } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
    process.stdout.write((await startPetstore()).url);
    setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [url] = await once(parent.stdout, "data");
    parent.kill(signal);
    // The petstore inherits the error output alone.
    await once(parent, "exit");
    await expect.poll(() => isGone({ url: `${url}` } as TestPetstore), { timeout: 30_000 }).toBe(true);
  },
);

test("whoever forgets to stop it can end", { timeout }, async () => {
  const script = `import { startPetstore } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
    await startPetstore();`;
  const forgetful = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "inherit" });
  expect(await once(forgetful, "exit")).toEqual([0, null]);
});
