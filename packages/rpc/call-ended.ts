import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { CallContext } from "./call.ts";

/**
 * Told of each call at its end, by whoever serves or makes it: how long it took, in milliseconds, and why it failed. `context`
 * is known of calls that began to be served.
 */
export type CallEnded = (
  method: DescMethod,
  ms: number,
  failure: ConnectError | undefined,
  context?: CallContext,
) => void;
