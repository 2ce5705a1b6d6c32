/**
 * The load generator, a program of its own, so that its work is not counted as the servers'. It is wrk if that is installed,
 * because wrk leaves more of the machine to the subject, else autocannon. One run uses the same generator throughout.
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

/** What a generator measured. Times are in milliseconds. */
export interface Answered {
  readonly requests: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  /** Number of error answers. */
  readonly refused: number;
  /** Number of broken connections and missing answers. */
  readonly broken: number;
}

export interface Generator {
  readonly name: string;
  run(load: Load): Promise<Answered>;
}

/** Writes the requests into `dir`. The environment variable WRK may name the program; `WRK=none` selects autocannon. */
export function createGenerator(dir: string, environment = process.env): Generator {
  const wrk = environment.WRK ?? findProgram("wrk");
  const uses = wrk && wrk !== "none" ? wrk : undefined;
  return {
    name: uses ? "wrk" : "autocannon",
    run: (load) => (uses ? runWrk(uses, load, dir) : runAutocannon(load, dir)),
  };
}
