/** Timeouts that are longer than any timer. */
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { LONGEST_TIMER_MS } from "../call.ts";

/** Removes a caller's timeout that no timer can run for: Connect would set one to it, and Node fires that at once. */
export function dropEndlessTimeout(header: Headers): void {
  const drop = (name: string, parse: typeof parseGrpcTimeout) => {
    const { timeoutMs = 0 } = parse(header.get(name), Number.POSITIVE_INFINITY);
    if (timeoutMs > LONGEST_TIMER_MS) header.delete(name);
  };
  drop("connect-timeout-ms", parseConnectTimeout);
  drop("grpc-timeout", parseGrpcTimeout);
}
