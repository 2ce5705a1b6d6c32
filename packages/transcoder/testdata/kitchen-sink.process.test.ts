/** The cases of the kitchen sink, through the command; or, where GRPC_GO_SERVER is the program of testdata/go, to that server. */
import { kitchenSink } from "./kitchen-sink/files.ts";
import { COMMAND } from "./run/command.ts";
import { grpcGo } from "./run/grpc-go.ts";
import { runCases } from "./run/run-cases.ts";

const { GRPC_GO_SERVER } = process.env;
const way = GRPC_GO_SERVER ? grpcGo(GRPC_GO_SERVER) : COMMAND;

for (const { contract, cases } of kitchenSink) runCases(contract, cases, [way]);
