/**
 * Limits how many streams callers may have open at the gateway, and ends streams whose caller's credentials become invalid.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { callerName, type Principal } from "@petstore/rpc/call";
import type { CallerAddress } from "@petstore/rpc/http/hosts";
import { countAsStream } from "@petstore/rpc/http/requests";
import { createOpenStreams, defaultStreamLimits, type StreamLimits } from "@petstore/rpc/server/open-streams";
import { HttpError, isGone } from "connect-transcoder";
import type { FastifyRequest } from "fastify";
import { METRICS, type Metrics } from "../processes/metrics.ts";

export interface StreamsOptions {
  readonly streams?: StreamLimits | undefined;
  /** Identifies callers that do not authenticate. */
  readonly addressOf: CallerAddress;
}

declare module "fastify" {
  interface FastifyRequest {
    /**
     * Set for a request that is answered by a stream. Aborts when the stream has to end; the reason is the caller's error.
     */
    ended: AbortSignal | undefined;
  }
}

/**
 * Counts a request that is answered by a stream, until its answer is over. Throws TOO_MANY_STREAMS. `recheck` gets a function
 * that ends the stream with an error for its caller. It returns a function to call when the stream is over.
 */
export type CountStream = (
  request: FastifyRequest,
  method: DescMethod,
  principal: Principal,
  recheck: (end: (error: unknown) => void) => (() => void) | undefined,
) => void;

export function countStreams({
  streams = defaultStreamLimits,
  addressOf,
  metrics,
}: StreamsOptions & { readonly metrics: Metrics }): CountStream {
  const openStreams = createOpenStreams(streams);
  metrics.read(METRICS.streams, (tell) => tell(openStreams.count(), "gateway"));
  return (request, { methodKind }, principal, recheck) => {
    const { raw, response } = request;
    if (methodKind === "unary" || !response || isGone(response)) return;
    const leaveStreams = openStreams.enter(callerName(principal, () => addressOf(request)));
    if (typeof leaveStreams === "string") throw new HttpError("TOO_MANY_STREAMS", leaveStreams);
    const ended = new AbortController();
    request.ended = ended.signal;
    const leave = recheck((error) => ended.abort(error));
    response.once("close", () => {
      leaveStreams();
      leave?.();
    });
    countAsStream(raw, response);
  };
}
