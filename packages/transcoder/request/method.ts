/** Methods that nobody has registered. Over HTTP/1.1 node's parser refuses them; HTTP/2 brings any. */
import { type IncomingMessage, METHODS } from "node:http";

const known = new Set(METHODS);
const asSent = new WeakMap<IncomingMessage, string>();

/** Fastify's router knows methods by name, and has no answer for others: one of those it takes for TRACE. */
export function makeRoutable(request: IncomingMessage): void {
  const { method = "" } = request;
  if (known.has(method)) return;
  asSent.set(request, method);
  request.method = "TRACE";
}

/** Gives a request that is routed its method again. */
export function restoreMethod(request: IncomingMessage): void {
  const method = asSent.get(request);
  if (method !== undefined) request.method = method;
}
