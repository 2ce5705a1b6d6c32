import { describe, expect, test } from "vitest";
import { type CallOptions, Overloaded } from "../port.ts";
import { createAdmission, MAX_IN_ALL, MAX_PER_DOCUMENT, type Queues } from "./admission.ts";

/** A store that answers nothing until it is told to. */
function stuck() {
  const admission = createAdmission();
  const queues: Queues = new Map();
  const { promise, resolve } = Promise.withResolvers<string>();
  const begun: number[] = [];
  const change = (id: number, options?: CallOptions) =>
    admission.change(queues, id, options, () => {
      begun.push(id);
      return promise;
    });
  const read = () => admission.read(undefined, () => promise);
  const times = <R>(count: number, call: () => Promise<R>) => Array.from({ length: count }, call);
  return { change, read, times, begun, queues, answer: () => resolve("done") };
}

describe("what waits is bounded", () => {
  test("for one document: beyond it changes are refused before they begin, others are not", async () => {
    const { change, times, begun, queues, answer } = stuck();
    const waiting = times(MAX_PER_DOCUMENT, () => change(1));
    await expect(change(1)).rejects.toThrow(Overloaded);
    await expect(change(1)).rejects.toMatchObject({ name: "Unavailable", inDoubt: false });
    const other = change(2);
    expect(begun).toHaveLength(MAX_PER_DOCUMENT + 1);
    answer();
    expect(await Promise.all([...waiting, other])).toHaveLength(MAX_PER_DOCUMENT + 1);
    expect(await change(1)).toBe("done");
    expect(queues.size).toBe(0);
  });

  test("for all of the store, reads and changes together", async () => {
    const { change, read, times, begun, answer } = stuck();
    let id = 0;
    const waiting = [...times(MAX_IN_ALL / 2, read), ...times(MAX_IN_ALL / 2, () => change(++id))];
    await expect(change(0)).rejects.toThrow(Overloaded);
    await expect(read()).rejects.toThrow(Overloaded);
    expect(begun).not.toContain(0);
    answer();
    await Promise.all(waiting);
    expect(await change(0)).toBe("done");
  });
});

describe("a call that has begun to change something goes on: its caller must not be told that nothing was done", () => {
  const call = () => ({ deadline: 1, progress: { hasBegun: false } });

  test.each([
    ["with its own options", (options: CallOptions) => options],
    ["with a copy that was made before", (options: CallOptions) => ({ ...options, deadline: 2 })],
  ])("%s", async (_, step) => {
    const { change, times, begun } = stuck();
    const first = call();
    const second = step(first);
    void change(7, first);
    void times(MAX_IN_ALL - 1, () => change(begun.length));
    await expect(change(-1, call())).rejects.toThrow(Overloaded);
    void change(8, second);
    void change(9, { ...second });
    expect(begun.slice(-2)).toEqual([8, 9]);
  });
});
