import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test, vi } from "vitest";
import { recentDocuments } from "./recent.ts";

const bytesOf = (id: number, version = 1) => new Uint8Array(300).fill(id % 251).fill(version, 0, 1);
function bench() {
  const recent = recentDocuments<{ readonly version: number }>();
  const decode = vi.fn((bytes: Uint8Array) => ({ version: bytes[0] as number }));
  return {
    decode,
    read: (id: number, version?: number) => recent.read(id, bytesOf(id, version), decode),
    readInPassing: (id: number, version?: number) => recent.readInPassing(id, bytesOf(id, version), decode),
  };
}

test("the same bytes are the same document, others are another one", () => {
  const { read, readInPassing, decode } = bench();
  const first = read(1);
  expect(read(1)).toBe(first);
  expect(readInPassing(1)).toBe(first);
  expect(decode).toHaveBeenCalledTimes(1);
  expect(readInPassing(1, 2)).toEqual({ version: 2 });
  expect(read(1, 2)).toEqual({ version: 2 });
  expect(decode).toHaveBeenCalledTimes(2);
});

test("what is read in passing is remembered the second time", () => {
  const { readInPassing, decode } = bench();
  readInPassing(1);
  const second = readInPassing(1);
  expect(decode).toHaveBeenCalledTimes(2);
  expect(readInPassing(1)).toBe(second);
  expect(decode).toHaveBeenCalledTimes(2);
});

test("many that are read in passing push out nothing", () => {
  const { read, readInPassing, decode } = bench();
  read(1);
  for (let id = 2; id < 10_000; id++) readInPassing(id);
  decode.mockClear();
  read(1);
  expect(decode).not.toHaveBeenCalled();
});

test("of what was read or written no more is kept than the document: its bytes may lie in a large buffer", async () => {
  const recent = recentDocuments<object>();
  const lent = (keep: (bytes: Uint8Array) => void) => {
    const buffer = new ArrayBuffer(64 * 1024);
    keep(new Uint8Array(buffer, 8, 300));
    return new WeakRef(buffer);
  };
  const kept = [
    lent((bytes) => recent.note(0, bytes, {})),
    lent((bytes) => recent.read(1, bytes, () => ({}))),
    lent((bytes) => recent.readInPassing(1, bytes.fill(1), () => ({}))),
  ];
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  await expect
    .poll(async () => {
      await sleep(20);
      gc();
      return kept.filter((buffer) => buffer.deref()).length;
    })
    .toBe(0);
  expect([0, 1].map((id) => recent.last(id)?.document)).toEqual([{}, {}]);
});
