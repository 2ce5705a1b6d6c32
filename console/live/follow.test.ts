import { expect, test } from "vitest";
import type { Kind } from "../records/changes.ts";
import type { LiveEvent, Told } from "./events.ts";
import { createFollowing } from "./follow.ts";
import { Refusal } from "./refusal.ts";
import type { LiveState } from "./state.ts";

const event = (id: string) => ({ id }) as LiveEvent;
const told = (id: string): Told => ({ id, event: event(id) });

/** So long a stream may be silent. */
const SILENCE_MS = 45_000;

/** Runs against streams that end as they are told to, and says what happened in which order. */
const follow = (...streams: readonly (readonly (Told | Error)[])[]) => followOnClock(() => 0, ...streams);

async function followOnClock(now: () => number, ...streams: readonly (readonly (Told | Error)[])[]) {
  const seen: string[] = [];
  const pauses: number[] = [];
  const over = new AbortController();
  let opened = 0;
  let state: LiveState | undefined;
  const following = createFollowing({
    open: async function* (kinds, lastId) {
      seen.push(`open ${lastId}${kinds.length < 4 ? ` ${kinds}` : ""}`);
      for (const each of streams[opened++] ?? []) {
        if (each instanceof Error) throw each;
        yield each;
      }
      if (opened === streams.length) over.abort();
    },
    take: ({ id }) => seen.push(`take ${id}`),
    lost: () => seen.push("lost"),
    deny: (kind) => seen.push(`deny ${kind}`),
    refuse: ({ code }) => seen.push(code),
    show: (next) => {
      if (next !== state) seen.push(next);
      state = next;
    },
    sleep: (ms) => (ms === SILENCE_MS ? new Promise(() => {}) : Promise.resolve(void pauses.push(ms))),
    now,
    random: () => 1,
  });
  await following.run(over.signal);
  return { seen, pauses };
}

test("what was read before the stream began is read again, and each event is taken", async () => {
  const { seen } = await follow([{}, { id: "0" }, told("1"), { id: "2" }]);
  expect(seen).toEqual(["open ", "live", "lost", "take 1"]);
});

test("a stream that ends or breaks goes on behind the last id, of a heartbeat too", async () => {
  const { seen } = await follow([told("1")], [told("2"), { id: "3" }, new TypeError("reset")], [told("4")]);
  expect(seen.filter((each) => !/live|reconnecting/.test(each))).toEqual([
    "open ",
    "lost",
    "take 1",
    "open 1",
    "take 2",
    "open 3",
    "take 4",
  ]);
});

test("whoever stands before the petstore is asked again no sooner than it wants, and is not the petstore", async () => {
  const away = new Refusal("", "503", 120_000);
  const { seen, pauses } = await follow([away], [away], [away], [away], []);
  expect(pauses.slice(0, 4)).toEqual([120_000, 120_000, 120_000, 120_000]);
  expect(seen).toContain("offline");
});

test("pauses grow to ten seconds, begin again after a success, and are as long as the petstore asks for", async () => {
  const down = [new TypeError("refused")];
  const { seen, pauses } = await follow(
    down,
    down,
    down,
    down,
    down,
    down,
    down,
    [told("1")],
    [new Refusal("RATE_LIMITED", "", 7_000)],
    [],
  );
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 500, 7_000]);
  expect(seen.filter((each) => /live|offline|reconnecting/.test(each))).toEqual([
    "reconnecting",
    "offline",
    "live",
    "reconnecting",
  ]);
});

test("a petstore that answers is not offline, however often it refuses", async () => {
  const busy = [new Refusal("SERVER_BUSY", "")];
  const { seen } = await follow(busy, busy, busy, busy, busy, [told("1")], []);
  expect(seen.filter((each) => /live|offline|reconnecting/.test(each))).toEqual([
    "reconnecting",
    "live",
    "reconnecting",
  ]);
});

test.each([
  ["ten minutes", 600_000, ["open ", "lost", "take 1", "open 1", "take 2"]],
  ["longer", 600_001, ["open ", "lost", "take 1", "open ", "lost", "take 2"]],
])("after %s without a word", async (_, away, expected) => {
  let time = 0;
  const { seen } = await followOnClock(
    () => time,
    [
      told("1"),
      {
        get error() {
          time = away; // passes before the next attempt
          return { code: "UNAVAILABLE", message: "" };
        },
      },
    ],
    [told("2")],
  );
  expect(seen.filter((each) => !/live|reconnecting/.test(each))).toEqual(expected);
});

const lost = ["EVENTS_EXPIRED", "INVALID_HEADER"];
test.each(lost)("a place that is answered with %s is given up, and everything read again", async (code) => {
  const { seen } = await follow([told("1")], [new Refusal(code, "")], [told("9")]);
  expect(seen).toEqual([
    "open ",
    "live",
    "lost",
    "take 1",
    "reconnecting",
    "open 1",
    "open ",
    "live",
    "lost",
    "take 9",
  ]);
});

test("an error inside the stream is one of the stream", async () => {
  const slow = { error: { code: "SLOW_CONSUMER", message: "" } };
  const { seen } = await follow([told("1"), slow], [told("2")]);
  expect(seen).toEqual(["open ", "live", "lost", "take 1", "reconnecting", "open 1", "live", "take 2"]);
});

test("what is refused for good is not tried again", async () => {
  const { seen, pauses } = await follow([new Refusal("ROUTE_NOT_FOUND", "")], []);
  expect([seen, pauses]).toEqual([["open ", "refused", "ROUTE_NOT_FOUND"], []]);
});

const lacks = (kind: Kind) => new Refusal("PERMISSION_DENIED", "", 0, kind);

test("who may not read all kinds of records is told of the others, at once", async () => {
  const { seen, pauses } = await follow([lacks("category")], [lacks("order")], [told("1")], [told("2")]);
  expect(seen).toEqual([
    "open ",
    "deny category",
    "open  pet,order,inventory",
    "deny order",
    "open  pet,inventory",
    "live",
    "lost",
    "take 1",
    "reconnecting",
    "open 1 pet,inventory",
    "live",
    "take 2",
  ]);
  expect(pauses).toHaveLength(1);
});

test("who may not read a kind any more finds out which, and is told of the others", async () => {
  const { seen } = await follow(
    [told("1"), { error: { code: "PERMISSION_DENIED", message: "" } }],
    [lacks("order")],
    [told("2")],
  );
  expect(seen.filter((each) => !/live|reconnecting|lost/.test(each))).toEqual([
    "open ",
    "take 1",
    "open 1",
    "deny order",
    "open 1 pet,category,inventory",
    "take 2",
  ]);
});

test("who may read none is refused, and is not asked for what was not asked for", async () => {
  const { seen } = await follow([lacks("pet")], [lacks("category")], [lacks("order")], [lacks("inventory")], []);
  expect(seen.filter((each) => !each.startsWith("open"))).toEqual([
    "deny pet",
    "deny category",
    "deny order",
    "deny inventory",
    "refused",
    "PERMISSION_DENIED",
  ]);
  const again = await follow([lacks("pet")], [lacks("pet")], []);
  expect(again.seen.at(-2)).toBe("refused");
});

test("a stream that says nothing for 45 s is broken: that is shown, and another one goes on behind the last id", async () => {
  const silences: (() => void)[] = [];
  const seen: string[] = [];
  const over = new AbortController();
  const isSilent = Promise.withResolvers<void>();
  const following = createFollowing({
    open: async function* (_, lastId, signal) {
      seen.push(`open ${lastId}`);
      if (lastId !== "") return over.abort();
      yield told("1");
      isSilent.resolve();
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    take: ({ id }) => seen.push(`take ${id}`),
    lost: () => {},
    deny: () => {},
    refuse: () => {},
    show: (state) => seen.push(state),
    sleep: (ms) => (ms === SILENCE_MS ? new Promise((resolve) => silences.push(resolve)) : Promise.resolve()),
    now: () => 0,
    random: () => 1,
  });
  const run = following.run(over.signal);
  await isSilent.promise;
  expect(silences).toHaveLength(2); // before the event, and behind it
  silences[0]?.();
  await new Promise((resolve) => setTimeout(resolve));
  expect(seen).toEqual(["open ", "live", "take 1"]);
  silences[1]?.();
  await run;
  expect(seen).toEqual(["open ", "live", "take 1", "reconnecting", "open 1"]);
});
