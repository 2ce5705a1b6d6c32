import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpError } from "../errors/http-error.ts";
import type { HandlerOptions } from "./routes.ts";
import type { StreamOptions } from "./streams.ts";

/**
 * What ends a stream: `over`, the end of what its caller may have, the caller who leaves, and the server that closes, with
 * `closing` as the reason.
 */
export function streamEnd(
  over: AbortController,
  request: FastifyRequest,
  reply: FastifyReply,
  { endOf, streams }: Pick<HandlerOptions, "endOf"> & Pick<StreamOptions, "streams">,
  closing: HttpError | undefined,
): AbortSignal {
  const refused = endOf(request);
  const signal = refused ? AbortSignal.any([refused, over.signal]) : over.signal;
  const ended = streams.add(() => over.abort(closing));
  reply.raw.once("close", () => {
    ended();
    over.abort();
  });
  return signal;
}
