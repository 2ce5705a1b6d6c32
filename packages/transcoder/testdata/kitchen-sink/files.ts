/** The kitchen sink: its contracts, and the files of its cases by the rows of what a transcoder has to know. */
import type { FileRegistry } from "@bufbuild/protobuf";
import { type Case, readCases } from "../run/case.ts";
import { compileContract } from "../run/contract.ts";

export interface Sink {
  readonly contract: () => FileRegistry;
  /** Each name begins with the row. */
  readonly cases: readonly Case[];
}

const ROWS = [
  "templates",
  "verbs",
  "query",
  "bodies",
  "well-known",
  "answers",
  "patches",
  "bytes",
  "streams",
  "errors",
  "headers",
  "unbound",
];

const sinkOf = (protos: readonly string[], rows: readonly string[]): Sink => ({
  contract: once(() => compileContract(...protos)),
  cases: rows.flatMap((row) =>
    readCases(`kitchen-sink/${row}.json`).map((one) => ({ ...one, name: `${row}: ${one.name}` })),
  ),
});

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export const kitchenSink: readonly Sink[] = [
  sinkOf(["kitchen_sink.proto"], ROWS),
  sinkOf(["kitchen_sink_proto2.proto", "kitchen_sink_editions.proto"], ["proto2"]),
  sinkOf(["kitchen_sink_conflict.proto"], ["conflicts"]),
];
