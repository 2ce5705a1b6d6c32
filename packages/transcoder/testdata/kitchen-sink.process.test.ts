/** The cases of the kitchen sink, through the command. */
import { readCases } from "./run/case.ts";
import { COMMAND } from "./run/command.ts";
import { compileContract } from "./run/contract.ts";
import { runCases } from "./run/run-cases.ts";

runCases(() => compileContract("kitchen_sink.proto"), readCases("kitchen-sink/templates.json"), [COMMAND]);
