/** The cases of the kitchen sink, with the service in the process and over gRPC. */
import { readCases } from "./run/case.ts";
import { compileContract } from "./run/contract.ts";
import { runCases } from "./run/run-cases.ts";
import { GRPC, IN_PROCESS } from "./run/way.ts";

runCases(() => compileContract("kitchen_sink.proto"), readCases("kitchen-sink/templates.json"), [IN_PROCESS, GRPC]);
