/** Tells how long calls took, with all their attempts; streams take until their last message was read. */
import { ConnectError, type Transport } from "@connectrpc/connect";
import type { Clock } from "@petstore/runtime/clock";
import type { CallEnded } from "../call.ts";

export function withDurations(
  next: Transport,
  { clock, callEnded }: { readonly clock: Clock; readonly callEnded?: CallEnded | undefined },
): Transport {
  if (!callEnded) return next;
  const failureOf = (thrown: unknown) => (thrown === undefined ? undefined : ConnectError.from(thrown));
  return {
    async unary(method, ...call) {
      const since = clock();
      try {
        const answer = await next.unary(method, ...call);
        callEnded(method, clock() - since, undefined);
        return answer;
      } catch (error) {
        callEnded(method, clock() - since, failureOf(error));
        throw error;
      }
    },
    async stream(method, ...call) {
      const since = clock();
      const end = (thrown: unknown) => callEnded(method, clock() - since, failureOf(thrown));
      try {
        const answer = await next.stream(method, ...call);
        return { ...answer, message: followed(answer.message, end) };
      } catch (error) {
        end(error);
        throw error;
      }
    },
  };
}

async function* followed<T>(messages: AsyncIterable<T>, end: (thrown: unknown) => void): AsyncIterable<T> {
  let thrown: unknown;
  try {
    yield* messages;
  } catch (error) {
    thrown = error;
    throw error;
  } finally {
    end(thrown);
  }
}
