/** The promises of `port.ts` as tests. Every engine runs all of them, each on a store of its own. */
import { describe } from "vitest";
import { changes } from "./changes.ts";
import { concurrency } from "./concurrency.ts";
import { corruptDocuments } from "./corrupt-documents.ts";
import { documents } from "./documents.ts";
import { lifecycle } from "./lifecycle.ts";
import { lists } from "./lists.ts";
import { prefixes } from "./prefixes.ts";
import type { OpenSubject } from "./subject.ts";
import { updates } from "./updates.ts";
import { values } from "./values.ts";

/** `open` returns an empty store on the given clock, and the means to close and reopen it. */
export function conformance(engine: string, open: OpenSubject): void {
  describe(`${engine} keeps the promises of the port`, () => {
    describe("documents", () => documents(open));
    describe("values", () => values(open));
    describe("updates", () => updates(open));
    describe("lists", () => lists(open));
    describe("prefixes", () => prefixes(open));
    describe("concurrency", () => concurrency(open));
    describe("changes", () => changes(open));
    describe("corrupt", () => corruptDocuments(open));
    describe("lifecycle", () => lifecycle(open));
  });
}
