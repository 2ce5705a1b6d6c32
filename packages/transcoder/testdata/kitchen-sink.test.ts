/** The cases of the kitchen sink, with the service in the process and over gRPC. */
import { kitchenSink } from "./kitchen-sink/files.ts";
import { runCases } from "./run/run-cases.ts";
import { GRPC, IN_PROCESS } from "./run/way.ts";

for (const { contract, cases } of kitchenSink) runCases(contract, cases, [IN_PROCESS, GRPC]);
