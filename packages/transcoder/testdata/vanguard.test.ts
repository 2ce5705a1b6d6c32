/** vanguard-go's cases, restated. vanguard/README.md says which have none. */
import { readCases } from "./run/case.ts";
import { compileContract } from "./run/contract.ts";
import { runCases } from "./run/run-cases.ts";
import { GRPC, IN_PROCESS } from "./run/way.ts";

runCases(() => compileContract("vanguard/volumes.proto"), readCases("vanguard/volumes.json"), [IN_PROCESS, GRPC]);
runCases(
  () => compileContract("vanguard/values.proto"),
  readCases("vanguard/parameters.json", "vanguard/fields.json"),
  [IN_PROCESS],
);
