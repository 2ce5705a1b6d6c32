/** Creates with an idempotency key that were sent back without effect. */
import { ConnectError, type Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { deadlineAfter } from "../deadline.ts";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { isKeyed } from "./retry.ts";

/** Tells a create with a key how much of the key's history its caller has seen; see `keys.ts`. */
export const SEEN_HEADER = "x-petstore-key-seen";
/** In the error's metadata: what to see before asking again. */
export const FLOOR = "floor";

const MAX_ATTEMPTS = 4;

/**
 * A message can arrive after its caller gave up. So a create with a key starts by having seen nothing; where the key has
 * been freed by a refusal meanwhile, it is sent back without effect, and only a caller that still waits asks again.
 */
export function withKeyedRetry(
  next: Transport,
  { clock, errors }: Pick<Runtime, "clock"> & { readonly errors: ErrorCatalogue },
): Transport {
  return {
    ...next,
    async unary(method, signal, timeoutMs, init, input, contextValues) {
      if (!isKeyed(method, input)) return next.unary(method, signal, timeoutMs, init, input, contextValues);
      const deadline = deadlineAfter(clock, timeoutMs);
      const headers = new Headers(init);
      headers.set(SEEN_HEADER, "0");
      for (let attempt = 1; ; attempt++) {
        try {
          return await next.unary(method, signal, deadline.timeoutMs(), headers, input, contextValues);
        } catch (error) {
          const floor = error instanceof ConnectError ? errors.reasonOf(error)?.metadata[FLOOR] : undefined;
          if (floor === undefined || attempt === MAX_ATTEMPTS || signal?.aborted) throw error;
          headers.set(SEEN_HEADER, floor);
        }
      }
    },
  };
}
