/** Timeouts in the form that gRPC prescribes. */
import type { Interceptor } from "@connectrpc/connect";

const NAME = "grpc-timeout";
/** The largest value of a timeout, in any unit: eight digits ("gRPC over HTTP2", TimeoutValue). */
const MOST = 99_999_999;

/** Corrects connect-node 2.2, which writes fractions of milliseconds and more than eight digits: servers may reject these. */
export const sayTimeout: Interceptor = (next) => (request) => {
  const ms = Number.parseFloat(request.header.get(NAME) ?? "");
  if (ms > MOST) request.header.set(NAME, `${Math.min(MOST, Math.ceil(ms / 1000))}S`);
  else if (!Number.isInteger(ms) && ms > 0) request.header.set(NAME, `${Math.ceil(ms)}m`);
  return next(request);
};
