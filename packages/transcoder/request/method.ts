/** Methods that nobody has registered. Over HTTP/1.1 node's parser refuses them; HTTP/2 brings any. */
import { type IncomingMessage, METHODS } from "node:http";

const known = new Set(METHODS);
const asSent = new WeakMap<IncomingMessage, string>();

/** What the router takes an unregistered method for: it knows this one, and few routes have it. */
const STAND_IN = "TRACE";

/** Fastify's router knows methods by name and has no answer for others, so an unregistered one is routed as another. */
export function makeRoutable(request: IncomingMessage): void {
  const { method = "" } = request;
  if (known.has(method)) return;
  asSent.set(request, method);
  request.method = STAND_IN;
}

/** Gives a request its own method back once it is routed. */
export function restoreMethod(request: IncomingMessage): void {
  if (request.method !== STAND_IN) return;
  const method = asSent.get(request);
  if (method !== undefined) request.method = method;
}
