import { PetstoreError } from "@petstore/client";
import { expect, test } from "vitest";
import { createFollowing, type FollowOptions } from "./follow.ts";
import type { LiveEvent, LiveState } from "./state.ts";

type Watch = FollowOptions["watch"];
/** What happens during a watch: an event, a heartbeat, the end of a stream after which the client opens another, or an error. */
type Step = string | "heartbeat" | { readonly ended: string } | PetstoreError;

const failure = (code: string, more = {}) => new PetstoreError(code, "", more);
const lacks = (missingScope: string) => failure("PERMISSION_DENIED", { missingScope });

/** Runs against watches that go as they are told to, and says what happened in which order. */
async function follow(...watches: readonly (readonly Step[])[]) {
  const seen: string[] = [];
  const pauses: number[] = [];
  const over = new AbortController();
  let opened = 0;
  let state: LiveState | undefined;
  const watch = async function* ({ types, resumeToken }, { onConnection }) {
    seen.push(`open ${resumeToken}${types.length < 4 ? ` ${types}` : ""}`);
    let isOpen = false;
    for (const each of watches[opened++] ?? []) {
      if (each instanceof Error) throw each;
      if (typeof each === "object") {
        onConnection?.(false, each.ended === "" ? undefined : failure(each.ended));
        isOpen = false;
        continue;
      }
      if (!isOpen) onConnection?.(true);
      isOpen = true;
      if (each !== "heartbeat") yield { id: each, resumeToken: each } as LiveEvent;
    }
    if (opened === watches.length) over.abort();
  } as Watch;
  const following = createFollowing({
    watch,
    take: ({ id }) => seen.push(`take ${id}`),
    lost: () => seen.push("lost"),
    deny: (kind) => seen.push(`deny ${kind}`),
    refuse: ({ code }) => seen.push(code),
    show: (next) => {
      if (next !== state) seen.push(next);
      state = next;
    },
    sleep: async (ms) => void pauses.push(ms),
    now: () => 0,
    random: () => 1,
  });
  await following.run(over.signal);
  return { seen, pauses };
}

test("what was read before the stream began is read again, and each event is taken", async () => {
  const { seen } = await follow(["heartbeat", "1", "heartbeat"]);
  expect(seen).toEqual(["open ", "live", "lost", "take 1"]);
});

test("where the client goes on by another stream, nothing is read again", async () => {
  const { seen } = await follow(["1", { ended: "" }, { ended: "SLOW_CONSUMER" }, "2"]);
  expect(seen).toEqual(["open ", "live", "lost", "take 1", "reconnecting", "live", "take 2"]);
});

test("what the client gives up is begun again behind the last event, as late as the petstore asks for", async () => {
  const { seen, pauses } = await follow(
    ["1", failure("INTERNAL")],
    [failure("INTERNAL", { retryAfterMs: 12_000 })],
    ["2"],
  );
  expect(seen).toEqual(["open ", "live", "lost", "take 1", "reconnecting", "open 1", "open 1", "live", "take 2"]);
  expect(pauses).toEqual([10_000, 12_000]);
});

const away = { ended: "UNREACHABLE" };
test("several attempts without an answer are offline, and an answer is not, however often it refuses", async () => {
  const states = (seen: readonly string[]) => seen.filter((each) => /live|offline|reconnecting/.test(each));
  const { seen } = await follow([away, away, away, failure("UNREACHABLE")], [away, "1", away], ["2"]);
  expect(states(seen)).toEqual(["reconnecting", "offline", "live", "reconnecting", "live"]);
  const busy = { ended: "OVERLOADED" };
  expect(states((await follow([busy, busy, busy, busy, failure("OVERLOADED")], ["1"])).seen)).toEqual([
    "reconnecting",
    "live",
  ]);
});

test.each([
  ["ten minutes", 600_000, "1"],
  ["longer", 600_001, ""],
])("a page that was away for %s goes on, or begins again", async (_, ms, expected) => {
  const nothing = () => {};
  const asked: string[] = [];
  let [time, over] = [0, new AbortController()];
  const following = createFollowing({
    ...{ take: nothing, lost: nothing, deny: nothing, refuse: nothing, show: nothing, sleep: async () => {} },
    watch: async function* ({ resumeToken }) {
      asked.push(resumeToken);
      yield { id: "1", resumeToken: "1" } as LiveEvent;
      over.abort();
    },
    now: () => time,
    random: () => 1,
  });
  await following.run(over.signal);
  [time, over] = [ms, new AbortController()];
  await following.run(over.signal);
  expect(asked).toEqual(["", expected]);
});

test.each(["EVENTS_EXPIRED", "INVALID_QUERY"])(
  "a place that is answered with %s is given up, and everything read again",
  async (code) => {
    const again = ["open ", "live", "lost", "take 9"];
    const { seen } = await follow(["1"], [failure(code)], ["9"]);
    expect(seen).toEqual(["open ", "live", "lost", "take 1", "open 1", "reconnecting", ...again]);
    // The client may know a place that no event told.
    const { seen: quiet } = await follow(["heartbeat", failure(code)], ["9"]);
    expect(quiet).toEqual(["open ", "live", "lost", "reconnecting", ...again]);
  },
);

test.each(["ROUTE_NOT_FOUND", "UNAUTHENTICATED", "INVALID_QUERY"])("%s is not tried again", async (code) => {
  const { seen, pauses } = await follow([failure(code)], []);
  expect([seen, pauses]).toEqual([["open ", "refused", code], []]);
});

test("neither is a credential that has ended", async () => {
  expect((await follow(["1", failure("UNAUTHENTICATED")], [])).seen.slice(-2)).toEqual(["refused", "UNAUTHENTICATED"]);
});

test("who may not read all kinds of records is told of the others, at once", async () => {
  const { seen, pauses } = await follow([lacks("categories:read")], [lacks("orders:read")], ["1"]);
  expect(seen).toEqual([
    ...["open ", "deny category", "open  pet,order,inventory", "deny order", "open  pet,inventory"],
    ...["live", "lost", "take 1"],
  ]);
  expect(pauses).toEqual([]);
});

test("who may not read a kind any more finds out which, and is told of the others", async () => {
  const { seen } = await follow(["1", failure("PERMISSION_DENIED")], [lacks("orders:read")], ["2"]);
  expect(seen).toEqual([
    ...["open ", "live", "lost", "take 1", "reconnecting", "open 1", "deny order", "open 1 pet,category,inventory"],
    ...["live", "take 2"],
  ]);
});

test("who may read none is refused, and is not asked for what was not asked for", async () => {
  const none = ["pets:read", "categories:read", "orders:read", "inventory:read"].map((scope) => [lacks(scope)]);
  const { seen } = await follow(...none, []);
  expect(seen.filter((each) => !each.startsWith("open"))).toEqual([
    ...["deny pet", "deny category", "deny order", "deny inventory", "refused", "PERMISSION_DENIED"],
  ]);
  const again = await follow([lacks("pets:read")], [lacks("pets:read")], []);
  expect(again.seen.at(-2)).toBe("refused");
});
