import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import manifest from "../package.json" with { type: "json" };
import { rpcError } from "./errors.ts";
import { createMetrics } from "./metrics.ts";

const { getPet } = PetService.method;
const NOW = 1_700_000_000_000;

function start() {
  const { text, ...metrics } = createMetrics(() => NOW);
  const lines = (name: string) =>
    text("openmetrics")
      .split("\n")
      .filter((line) => line.startsWith(name));
  return { ...metrics, lines };
}
const labels = (more: string) => `rpc_system_name="connectrpc",rpc_method="petstore.pet.v1.PetService/GetPet"${more}`;

test("a call is recorded by its code, and has none if it succeeded", () => {
  const { served, called, lines } = start();
  served(getPet, 1500, undefined);
  served(getPet, 500, rpcError("PET_NOT_FOUND", "No such pet."));
  called(getPet, 250, new ConnectError("gone", Code.Canceled));
  const sums = ["server", "client"].flatMap((side) => lines(`rpc_${side}_call_duration_seconds_sum`));
  expect(sums).toEqual([
    `rpc_server_call_duration_seconds_sum{${labels("")}} 1.5`,
    `rpc_server_call_duration_seconds_sum{${labels(',rpc_status_code="not_found"')}} 0.5`,
    `rpc_client_call_duration_seconds_sum{${labels(',rpc_status_code="canceled"')}} 0.25`,
  ]);
  expect(lines("petstore_refused_total")).toEqual([]);
});

test.each(["OVERLOADED", "TOO_MANY_STREAMS", "RATE_LIMITED", "UNAUTHENTICATED", "PERMISSION_DENIED"] as const)(
  "a call that was not let in counts by its reason: %s",
  (reason) => {
    const { served, lines } = start();
    served(getPet, 0, rpcError(reason, "No."));
    expect(lines("petstore_refused_total")).toEqual([`petstore_refused_total{reason="${reason}"} 1`]);
  },
);

test("a service that is not there has refused nothing", () => {
  const { served, lines } = start();
  served(getPet, 0, rpcError("UNAVAILABLE", "No."));
  expect(lines("petstore_refused_total")).toEqual([]);
});

test("a call of a trace that is recorded is an exemplar", () => {
  const { served, lines } = start();
  const trace = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true };
  served(getPet, 6, undefined, { trace } as never);
  const found = lines("rpc_server_call_duration_seconds_bucket").filter((line) => line.includes("#"));
  expect(found).toEqual([
    `rpc_server_call_duration_seconds_bucket{${labels(',le="0.01"')}} 1 ` +
      `# {trace_id="${trace.traceId}",span_id="${trace.spanId}"} 0.006 1700000000`,
  ]);
});

test("the version is the package's", () => {
  expect(start().lines("petstore_build_info")).toEqual([`petstore_build_info{version="${manifest.version}"} 1`]);
});
