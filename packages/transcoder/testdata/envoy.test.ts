/** The cases of Envoy's transcoder and of its library, restated. envoy/README.md says which have none. */
import { readCases } from "./run/case.ts";
import { compileContract } from "./run/contract.ts";
import { runCases } from "./run/run-cases.ts";
import { GRPC, IN_PROCESS } from "./run/way.ts";

runCases(() => compileContract("envoy/shop.proto"), readCases("envoy/shop.json"), [IN_PROCESS, GRPC]);
