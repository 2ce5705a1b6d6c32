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
