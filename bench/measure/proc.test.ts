import { expect, test } from "vitest";
import { cpuOf, cpuOfEndedChildren, cpuOfMachine, residentOf } from "./proc.ts";

// A name may look like the fields that follow it.
const stat = "4242 (node) S 1 (x) R 1 4242 4242 0 -1 4194304 9 9 0 0 150 25 7 3 20 0 11 0 100 1 1";

test("processor time is that of the process, or of its ended children, in microseconds", () => {
  expect(cpuOf(stat)).toBe(1_750_000);
  expect(cpuOfEndedChildren(stat)).toBe(100_000);
});

test("a machine that waits for its disk is not busy", () => {
  const text = "cpu  10 1 5 100 50 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
  expect(cpuOfMachine(text)).toEqual({ busy: 250_000, total: 1_750_000 });
});

test("resident memory is in bytes", () => {
  expect(residentOf("Name:\tnode\nVmRSS:\t  2048 kB\nVmSwap:\t 0 kB\n")).toBe(2_097_152);
  expect(residentOf("Name:\tnode\nState:\tZ (zombie)\n")).toBe(0);
});
