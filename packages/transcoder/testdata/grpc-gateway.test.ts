/** The cases of grpc-gateway's own tests, restated. */
import { readCases } from "./run/case.ts";
import { compileContract } from "./run/contract.ts";
import { runCases } from "./run/run-cases.ts";
import { IN_PROCESS } from "./run/way.ts";

runCases(
  () => compileContract("grpc_gateway/things.proto", "grpc_gateway/old.proto"),
  readCases("grpc_gateway/query.json", "grpc_gateway/values.json"),
  [IN_PROCESS],
);
runCases(() => compileContract("grpc_gateway/routes.proto"), readCases("grpc_gateway/routes.json"), [IN_PROCESS]);
runCases(
  () => compileContract("grpc_gateway/services.proto"),
  readCases("grpc_gateway/services.json", "grpc_gateway/changes.json"),
  [IN_PROCESS],
);
