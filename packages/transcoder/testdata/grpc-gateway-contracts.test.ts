/** Which contracts are served, as grpc-gateway's own tests have it for its grammar of paths and its generator. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { selectServed } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";

interface ContractCase {
  readonly name: string;
  /** The one RPC of a service S. */
  readonly rpc: string;
  /** Beside it; by default `ASKED`. */
  readonly messages?: string;
  readonly unbound?: true;
  /** The methods and templates that are served. */
  readonly serves?: readonly string[];
  /** A part of the reason why it is refused. */
  readonly refused?: string;
}

const ASKED = `
message Asked {
  string name = 1;
  Within field = 2;
  string other = 3;
  repeated string many = 4;
}
message Within {
  string nested = 1;
  Deep deep = 2;
}
message Deep {
  string nested2 = 1;
}`;

const cases = JSON.parse(
  readFileSync(join(import.meta.dirname, "grpc_gateway/contracts.json"), "utf8"),
) as readonly ContractCase[];

const fileOf = ({ rpc, messages = ASKED }: ContractCase, i: number): string => `syntax = "proto3";
package case${i};
import "google/api/annotations.proto";
import "google/protobuf/wrappers.proto";
service S {
  ${rpc}
}
${messages}`;

const registry = compileProtos(Object.fromEntries(cases.map((one, i) => [`case${i}.proto`, fileOf(one, i)])));

test.each(cases.map((one, i) => [one.name, one, i] as const))("%s", (_, { serves, refused, unbound = false }, i) => {
  const desc = serviceOf(registry, `case${i}.S`);
  const { served, refusals } = selectServed([{ desc }], { unbound });
  if (refused === undefined) expect(refusals).toEqual([]);
  else expect(refusals).toEqual([expect.stringContaining(refused)]);
  expect(served.flatMap(({ operations }) => operations).map(({ verb, route }) => `${verb} ${route}`)).toEqual(
    (serves ?? []).map((one) => one.replace("PACKAGE", `case${i}`)),
  );
});
