import { type IncomingMessage, Server, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { beginInTurns, createTurns, WORK_PER_TURN } from "./turns.ts";

/** Turns that are taken by hand. */
function byHand() {
  const due: (() => void)[] = [];
  const turns = createTurns((turn) => void due.push(turn));
  const begun: string[] = [];
  const ask = (caller: string, count: number) => {
    for (let i = 0; i < count; i++) turns(caller, () => void begun.push(`${caller}${i}`));
  };
  const turn = () => {
    begun.length = 0;
    due.shift()?.();
    return begun;
  };
  return { turns, ask, turn, due };
}

test("nothing is begun at once, and so much in one turn", () => {
  const { ask, turn, due } = byHand();
  ask("a", 20);
  expect(due).toHaveLength(1);
  expect([turn().length, turn().length, turn().length, turn().length]).toEqual([WORK_PER_TURN, WORK_PER_TURN, 4, 0]);
  expect(due).toEqual([]);
});

test("who asks for little waits for none of what others have asked for before", () => {
  const { ask, turn } = byHand();
  ask("a", 10_000);
  turn();
  ask("b", 2);
  expect(turn().slice(0, 4)).toEqual(["a8", "b0", "a9", "b1"]);
});

test("of more callers than there is time for, those who waited come first in the next turn", () => {
  const { ask, turn } = byHand();
  const callers = Array.from({ length: 12 }, (_, i) => `${i}-`);
  for (const caller of callers) ask(caller, 2);
  expect(turn()).toEqual(callers.slice(0, 8).map((caller) => `${caller}0`));
  expect(turn()).toEqual([...callers.slice(8).map((c) => `${c}0`), ...callers.slice(0, 4).map((c) => `${c}1`)]);
});

test("what is asked for while others begin gets a turn of its own", () => {
  const { turns, turn, due } = byHand();
  const begun: string[] = [];
  turns("a", () => turns("a", () => void begun.push("later")));
  turn();
  expect([begun, due.length]).toEqual([[], 1]);
  turn();
  expect([begun, due.length]).toEqual([["later"], 0]);
});

test("a server's requests are begun in turns, and not when their client has gone", async () => {
  const begun: IncomingMessage[] = [];
  const server = new Server((request) => void begun.push(request));
  beginInTurns(server);
  const requests = Array.from({ length: 2 * WORK_PER_TURN }, () => {
    const request = { socket: { remoteAddress: "192.0.2.1" }, method: "GET" } as IncomingMessage;
    const response = new ServerResponse(request);
    server.emit("request", request, response);
    return { request, response };
  });
  expect(begun).toEqual([]);
  requests[0]?.response.destroy();
  await new Promise(setImmediate);
  expect(begun).toEqual(requests.slice(1, WORK_PER_TURN).map(({ request }) => request));
  await new Promise(setImmediate);
  expect(begun).toHaveLength(requests.length - 1);
});
