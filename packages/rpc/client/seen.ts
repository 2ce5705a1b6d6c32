/**
 * No answer is older than an earlier one: a process sends with its calls what the answers of services said that they
 * had seen, and no service reads anything older, whichever of its replicas it is. Opaque here, but for what
 * `Progress.seen` of `packages/store/port.ts` says.
 */
import { ConnectError, type Transport } from "@connectrpc/connect";
import { SEEN_HEADER } from "../call.ts";

export type Seen = ReturnType<typeof createSeen>;

/** For the calls to all services, because what one of them says may follow from what another one has done. */
export function createSeen() {
  const latest = new Map<string, string>();
  let all = "";
  return {
    /** All that was seen, for the header of a call. */
    text: () => all,
    /** Takes what an answer tells out of its headers, so that nobody passes it on. */
    take(headers: Headers): void {
      const seen = headers.get(SEEN_HEADER);
      if (seen === null) return;
      headers.delete(SEEN_HEADER);
      const data = seen.slice(0, seen.indexOf(":"));
      if (seen <= (latest.get(data) ?? "")) return;
      latest.set(data, seen);
      all = [...latest.values()].join(" ");
    },
  };
}

export function withSeen(next: Transport, seen: Seen): Transport {
  const add = (init: HeadersInit | undefined): Record<string, string> => ({
    ...(init && Object.getPrototypeOf(init) === Object.prototype
      ? (init as Record<string, string>)
      : Object.fromEntries(new Headers(init))),
    [SEEN_HEADER]: seen.text(),
  });
  return {
    stream: (method, signal, timeoutMs, init, input, contextValues) =>
      next.stream(method, signal, timeoutMs, add(init), input, contextValues),
    async unary(method, signal, timeoutMs, init, input, contextValues) {
      try {
        const answer = await next.unary(method, signal, timeoutMs, add(init), input, contextValues);
        seen.take(answer.header);
        return answer;
      } catch (error) {
        if (error instanceof ConnectError) seen.take(error.metadata);
        throw error;
      }
    },
  };
}
