import * as published from "@opentelemetry/semantic-conventions";
import * as incubating from "@opentelemetry/semantic-conventions/incubating";
import { expect, test } from "vitest";
import * as names from "./names.ts";

test("names are those of the semantic conventions", () => {
  const all: Record<string, unknown> = { ...incubating, ...published };
  expect(Object.keys(names).length).toBeGreaterThan(10);
  expect({ ...names }).toEqual(Object.fromEntries(Object.keys(names).map((name) => [name, all[name]])));
});
