import { expect, test } from "vitest";
import type { Operation } from "../contract/operation.ts";
import { operationFinder } from "./operation-finder.ts";

const operation = (path: string): Operation =>
  ({
    verb: "GET",
    segments: path.split("/").map((part) => (part.startsWith("{") ? { variable: part } : { literal: part })),
  }) as unknown as Operation;

test("fixed text goes before what a request fills in, from the left, as in the router", () => {
  const [later, earlier, whole] = ["{x}/b/c", "a/{x}/{y}", "a/b/d"].map(operation) as [Operation, Operation, Operation];
  for (const operations of [
    [later, earlier, whole],
    [whole, earlier, later],
  ]) {
    const find = operationFinder(operations, "");
    expect(find("GET", "/a/b/c?q=1")).toBe(earlier);
    expect(find("GET", "/a/b/d")).toBe(whole);
    expect(find("GET", "/z/b/c")).toBe(later);
    expect(find("GET", "/z/z/c")).toBeUndefined();
  }
});
