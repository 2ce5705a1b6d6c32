/** Time limits as gRPC can say them. */
import type { Interceptor } from "@connectrpc/connect";

const NAME = "grpc-timeout";
/** The most that a limit can say, of any unit: eight digits ("gRPC over HTTP2", TimeoutValue). */
const MOST = 99_999_999;

/** connect-node 2.2 writes milliseconds with all digits that they have, which no server need understand. */
export const sayTimeout: Interceptor = (next) => (request) => {
  const ms = Number.parseFloat(request.header.get(NAME) ?? "");
  if (ms > MOST) request.header.set(NAME, `${Math.min(MOST, Math.ceil(ms / 1000))}S`);
  else if (!Number.isInteger(ms) && ms > 0) request.header.set(NAME, `${Math.ceil(ms)}m`);
  return next(request);
};
