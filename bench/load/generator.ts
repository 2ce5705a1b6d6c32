/**
 * Who asks: a program of its own, so that its work is not counted as the servers'. wrk when it is there, for it leaves
 * more of the machine to what is measured; else autocannon. All numbers of one run are of the same one.
 */
import { findProgram } from "../../test/harness/programs.ts";
import { runAutocannon } from "./autocannon.ts";
import type { Request } from "./workloads.ts";
import { runWrk } from "./wrk.ts";

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  readonly requests: readonly Request[];
}

/** What a generator saw. Times are in milliseconds. */
export interface Answered {
  readonly requests: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers that are errors. */
  readonly refused: number;
  /** Connections that broke, and answers that did not come. */
  readonly broken: number;
}

export interface Generator {
  readonly name: string;
  run(load: Load): Promise<Answered>;
}

/** Writes what is to be asked into `dir`. WRK may name the program; `WRK=none` takes autocannon. */
export function createGenerator(dir: string, environment = process.env): Generator {
  const wrk = environment.WRK ?? findProgram("wrk");
  const uses = wrk && wrk !== "none" ? wrk : undefined;
  return {
    name: uses ? "wrk" : "autocannon",
    run: (load) => (uses ? runWrk(uses, load, dir) : runAutocannon(load, dir)),
  };
}
