/** The promises of `port.ts` as tests. Every engine runs all of them, each on a store of its own. */
import { describe } from "vitest";
import { concurrency } from "./conformance/concurrency.ts";
import { documents } from "./conformance/documents.ts";
import { lifecycle } from "./conformance/lifecycle.ts";
import { lists } from "./conformance/lists.ts";
import { poison } from "./conformance/poison.ts";
import type { OpenSubject } from "./conformance/subject.ts";
import { updates } from "./conformance/updates.ts";
import { values } from "./conformance/values.ts";

/** `open` gives a store without any data on the clock handed to it, and the means to close and open it again. */
export function conformance(engine: string, open: OpenSubject): void {
  describe(`${engine} keeps the promises of the port`, () => {
    describe("documents", () => documents(open));
    describe("values", () => values(open));
    describe("updates", () => updates(open));
    describe("lists", () => lists(open));
    describe("concurrency", () => concurrency(open));
    describe("poison", () => poison(open));
    describe("lifecycle", () => lifecycle(open));
  });
}
