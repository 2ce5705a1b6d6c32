import { expect, test } from "vitest";
import {
  createPace,
  createServerTurns,
  createTurns,
  LONG_TURN_MS,
  type Pace,
  TURNS_WHILE_OTHERS_CONNECT,
  WORK_PER_TURN,
  WORK_TOGETHER,
} from "./turns.ts";

const steady: Pace = { begin: () => WORK_PER_TURN, isOver: () => false };
const atOnce = (begin: () => void) => begin();

/** Turns that are taken by hand. */
function byHand() {
  const due: (() => void)[] = [];
  const turns = createTurns((turn) => void due.push(turn), steady, atOnce);
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
  ask("a", 2 * WORK_PER_TURN + 4);
  expect(due).toHaveLength(1);
  expect([turn().length, turn().length, turn().length, turn().length]).toEqual([WORK_PER_TURN, WORK_PER_TURN, 4, 0]);
  expect(due).toEqual([]);
});

test("so much may begin at once in one turn, and nothing as long as others wait", () => {
  const { turns, ask, turn } = byHand();
  const begunAtOnce = (count: number) => Array.from({ length: count }, () => turns.atOnce()).filter(Boolean).length;
  expect(begunAtOnce(2 * WORK_PER_TURN)).toBe(WORK_PER_TURN);
  turn();
  expect(begunAtOnce(2)).toBe(2);
  ask("a", 1);
  expect(begunAtOnce(2)).toBe(0);
});

test("who asks for little waits for none of what others have asked for before", () => {
  const { ask, turn } = byHand();
  ask("a", 10_000);
  turn();
  ask("b", 2);
  expect(turn().slice(0, 4)).toEqual([`a${WORK_PER_TURN}`, "b0", `a${WORK_PER_TURN + 1}`, "b1"]);
});

test("of more callers than there is time for, those who waited come first in the next turn", () => {
  const { ask, turn } = byHand();
  const callers = Array.from({ length: WORK_PER_TURN + 4 }, (_, i) => `${i}-`);
  for (const caller of callers) ask(caller, 2);
  expect(turn()).toEqual(callers.slice(0, WORK_PER_TURN).map((caller) => `${caller}0`));
  expect(turn()).toEqual([
    ...callers.slice(WORK_PER_TURN).map((caller) => `${caller}0`),
    ...callers.slice(0, WORK_PER_TURN - 4).map((caller) => `${caller}1`),
  ]);
});

test("what is asked for while others begin comes last, in the same turn if there is room", () => {
  const { turns, ask, turn, due } = byHand();
  turns("a", () => ask("a", 1));
  ask("b", 2);
  expect(turn()).toEqual(["b0", "a0", "b1"]);
  expect(due).toEqual([]);
});

test("what asks for itself again and again leaves the turn to others", () => {
  const { turns, turn, due } = byHand();
  let times = 0;
  const again = () => {
    times++;
    turns("a", again);
  };
  again();
  turn();
  expect([times, due.length]).toEqual([1 + WORK_PER_TURN, 1]);
});

test("what counts as much work takes the place of as many others", () => {
  const { turns, ask, turn } = byHand();
  turns("a", () => WORK_PER_TURN - 2);
  ask("b", 10);
  expect(turn()).toEqual(["b0", "b1"]);
});

test("while a connection is accepted in each turn of the event loop, little else is begun", async () => {
  const turns = createServerTurns(steady);
  let begun = 0;
  for (let i = 0; i < 2 * WORK_PER_TURN; i++) turns(i, () => void begun++);
  const perTurn: number[] = [];
  for (let turn = 0; turn <= 2 * TURNS_WHILE_OTHERS_CONNECT; turn++) {
    if (turn < 2 * TURNS_WHILE_OTHERS_CONNECT) turns.accepted();
    begun = 0;
    await new Promise(setImmediate);
    perTurn.push(begun);
  }
  const some = [...Array(TURNS_WHILE_OTHERS_CONNECT - 1).fill(0), 1];
  expect(perTurn).toEqual([...some, ...some, WORK_PER_TURN]);
});

test("while turns are long, less is begun in each, and as much as before once they are short again", () => {
  let spent = 0;
  const pace = createPace(() => spent);
  const after = (ms: number) => {
    spent += ms;
    return pace.begin();
  };
  const long = Array.from({ length: 8 }, () => after(LONG_TURN_MS + 1));
  expect(long).toEqual([16, 8, 4, 2, 1, 1, 1, 1]);
  const short = Array.from({ length: 8 }, () => after(LONG_TURN_MS));
  expect(short).toEqual([2, 4, 8, 16, 32, 32, 32, 32]);
});

test("turns keep to the pace", () => {
  const due: (() => void)[] = [];
  let spent = 0;
  const turns = createTurns((turn) => void due.push(turn), { ...createPace(() => spent), isOver: () => false }, atOnce);
  let begun = 0;
  const begin = () => {
    begun++;
    spent += 10;
  };
  for (let i = 0; i < 200; i++) turns(i, begin);
  const perTurn = Array.from({ length: 6 }, () => {
    begun = 0;
    due.shift()?.();
    return begun;
  });
  expect(perTurn).toEqual([32, 16, 8, 4, 2, 4]);
});

test("a turn ends as soon as it is found to be long, and what follows from a few pieces is done before the next ones", async () => {
  let [spent, begun, done] = [0, 0, 0];
  const due: (() => void)[] = [];
  const turns = createTurns(
    (turn) => void due.push(turn),
    createPace(() => spent),
  );
  const open: number[] = [];
  const follow = () => {
    spent += 2;
    done++;
  };
  const begin = () => {
    open.push(++begun - done);
    queueMicrotask(() => process.nextTick(follow));
  };
  for (let i = 0; i < 200; i++) turns(i, begin);
  const perTurn: number[] = [];
  for (let i = 0; i < 4; i++) {
    begun = done = 0;
    due.shift()?.();
    await new Promise(setImmediate);
    perTurn.push(begun);
  }
  expect(perTurn).toEqual([16, 16, 8, 16]);
  expect(Math.max(...open)).toBe(WORK_TOGETHER);
});

test("nothing more begins at once in a turn that is found to be long", () => {
  let spent = 0;
  const turns = createTurns(
    () => {},
    createPace(() => spent),
  );
  let begun = 0;
  for (let i = 0; i < WORK_PER_TURN; i++) {
    if (turns.atOnce()) begun++;
    spent += 2;
  }
  expect(begun).toBe(2 * WORK_TOGETHER);
});

test("what waits already is not begun twice, and what fails keeps nobody from their turn", () => {
  const { turns, turn } = byHand();
  let begun = 0;
  const begin = () => void begun++;
  const fail = () => {
    throw new Error("no");
  };
  for (const each of [begin, fail, begin]) turns("a", each);
  turns("b", begin);
  expect(turn).toThrow("no");
  expect(begun).toBe(2);
  turns("a", begin);
  turn();
  expect(begun).toBe(3);
});
