/** Repeats creates with an idempotency key that a service sent back without effect. */
import type { Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { deadlineAfter } from "../deadline.ts";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { isKeyed } from "./retry.ts";

/** The header of a create with an idempotency key: the fencing epoch of the key that the caller has seen. */
export const SEEN_EPOCH_HEADER = "x-internal-key-seen";
/** In the metadata of an error that sends an attempt back: the key's fencing epoch, to send with the next attempt. */
export const EPOCH = "epoch";

const MAX_ATTEMPTS = 4;

/**
 * The client's half of idempotency keys; `docs/reliability.md` explains both halves. A message can arrive after its caller
 * gave up. So a create with a key is first sent with epoch 0. If a refusal has raised the key's epoch meanwhile, the attempt
 * is sent back without effect, and only a caller that still waits repeats it, with the new epoch.
 */
export function withKeyedRetry(
  next: Transport,
  { clock, errors }: Pick<Runtime, "clock"> & { readonly errors: ErrorCatalogue },
): Transport {
  const keyed: Transport["unary"] = async (method, signal, timeoutMs, init, input, contextValues) => {
    const deadline = deadlineAfter(clock, timeoutMs);
    const headers = new Headers(init);
    headers.set(SEEN_EPOCH_HEADER, "0");
    for (let attempt = 1; ; attempt++) {
      try {
        return await next.unary(method, signal, deadline.timeoutMs(), headers, input, contextValues);
      } catch (error) {
        const epoch = errors.reasonOf(error)?.metadata[EPOCH];
        if (epoch === undefined || attempt === MAX_ATTEMPTS || signal?.aborted) throw error;
        headers.set(SEEN_EPOCH_HEADER, epoch);
      }
    }
  };
  // Calls without a key pass through, without a promise of their own.
  return {
    ...next,
    unary: (method, signal, timeoutMs, init, input, contextValues) =>
      (isKeyed(method, input) ? keyed : next.unary)(method, signal, timeoutMs, init, input, contextValues),
  };
}
