/** Brings requests to operations: by one wildcard route of Fastify's, which takes a request only if the router finds its operation. */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { methodOf } from "../request/head.ts";
import type { Router } from "./router.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The operation that the request asks for; undefined where a route of the host's answers it, or nothing. */
    readonly operation: Operation | undefined;
    /** The headers of that operation, for the request's target, if it is on its way out. */
    readonly endingHeaders: Endpoint["endingHeaders"];
  }
  interface FastifyContextConfig {
    /** Of the route that takes the requests of all operations. */
    isOfOperations?: boolean;
  }
}

/** What is done with the requests of one operation. */
export interface Endpoint {
  /** The headers of an operation that is on its way out, for a request's target. */
  readonly endingHeaders: ((target: string) => Record<string, string>) | undefined;
  /** Judges a request by its head. Returns a promise only if something has to be waited for; else it calls `done`. */
  readonly admit: (request: FastifyRequest, reply: FastifyReply, done: () => void) => Promise<void> | void;
  readonly handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
}

/** The constraint that only the operations' route has. Fastify makes code of its name, which so has to be an identifier. */
const CONSTRAINT = "operation";
const THERE = "there";

/** What the router found for a request, and whether Fastify brought it there: a route of the host's may go first. */
interface Found {
  readonly target: string;
  readonly operation: Operation;
  isRouted?: boolean;
}

/** A property of the request itself: a WeakMap costs more than the search. */
const FOUND = Symbol("found");
type Searched = IncomingMessage & { [FOUND]?: Found };

/** The operation that a request asks for; found once, be it before Fastify has the request. */
export function operationOf(request: Searched, router: Router): Operation | undefined {
  const { url: target = "" } = request;
  const known = request[FOUND];
  if (known?.target === target) return known.operation;
  const operation = router.find(methodOf(request), target);
  if (operation) request[FOUND] = { target, operation };
  return operation;
}

/**
 * Finds the operation of each request: `request.operation`. Routes of the host's go before it, but for one that takes all
 * paths: there an operation goes first.
 */
export function findOperations(app: FastifyInstance, router: Router): void {
  app.addConstraintStrategy({
    name: CONSTRAINT,
    storage() {
      let handler: unknown = null;
      return {
        get: () => handler as never,
        set(_value, given) {
          handler = given;
        },
      };
    },
    deriveConstraint(request) {
      return operationOf(request as IncomingMessage, router) && THERE;
    },
  });
  app.decorateRequest("operation", {
    getter() {
      const found = (this.raw as Searched)[FOUND];
      if (!found) return undefined;
      found.isRouted ??= this.routeOptions.config.isOfOperations === true;
      return found.isRouted ? found.operation : undefined;
    },
  });
}

/** Registers the route of all operations. */
export function routeOperations(
  app: FastifyInstance,
  { verbs }: Router,
  endpointOf: (operation: Operation) => Endpoint,
): void {
  for (const verb of verbs) if (!app.supportedMethods.includes(verb)) app.addHttpMethod(verb, { hasBody: true });
  const endpoint = ({ raw }: FastifyRequest) => endpointOf(((raw as Searched)[FOUND] as Found).operation);
  app.route({
    // Fastify makes a route for HEAD from that for GET.
    method: ["GET", ...verbs.filter((verb) => verb !== "GET" && verb !== "HEAD")],
    url: "/*",
    constraints: { [CONSTRAINT]: THERE },
    config: { isOfOperations: true },
    onRequest: (request, reply, done) => endpoint(request).admit(request, reply, done),
    handler: (request, reply) => endpoint(request).handle(request, reply),
  });
}
