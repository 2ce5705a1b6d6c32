import { expect, test } from "vitest";
import { compileProtos } from "../fixtures/compile.ts";
import { countsOf, withoutNames } from "./counts.ts";

const contract = `syntax = "proto3";
package a.v1;
import "google/api/annotations.proto";
message M {}
message N { optional string name = 1; }
service Whole { rpc Get(M) returns (N) { option (google.api.http) = {get: "/whole"}; } }
service Part {
  rpc Get(M) returns (N) { option (google.api.http) = {get: "/part"}; }
  rpc Bad(M) returns (N) { option (google.api.http) = {get: "part"}; }
  rpc Worse(M) returns (N) { option (google.api.http) = {get: "also"}; }
  rpc Plain(M) returns (N);
}
service Alike {
  rpc Get(M) returns (N) { option (google.api.http) = {get: "/alike"}; }
  rpc Read(M) returns (N) { option (google.api.http) = {get: "/alike"}; }
}
service Without { rpc Get(M) returns (N); }`;

test("what is served is counted by service and RPC, and what is not by its reason", () => {
  const registry = compileProtos({ "a.proto": contract });
  const [services, rpcs, none, alike, get, read, , reason, ...methods] = countsOf(
    ["a.v1.Whole", "a.v1.Part", "a.v1.Alike", "a.v1.Without"].flatMap((name) => registry.getService(name) ?? []),
  ).split("\n");
  expect([services, rpcs, none]).toEqual(["services served whole: 1 of 3", "RPCs served: 2 of 6", ""]);
  expect([alike, get, read]).toEqual([
    "2 refused: no request can tell two RPCs of the service apart",
    "  a.v1.Alike/Get",
    "  a.v1.Alike/Read",
  ]);
  expect(reason).toMatch(/^2 refused: .*"…"/);
  expect(methods).toEqual(["  a.v1.Part/Bad", "  a.v1.Part/Worse", ""]);
});

test("reasons that differ by a name alone are the same", () => {
  expect(withoutNames("page.size: a map is not served")).toBe("…: a map is not served");
  expect(withoutNames('the path "/a" has a segment "b"')).toBe('the path "…" has a segment "…"');
  expect(withoutNames("max_results does not fit into a query")).toBe("… does not fit into a query");
});
