/**
 * Brings requests to operations: by one wildcard route of Fastify's, which takes a request only if the router finds its
 * operation. Gives each operation its handler, and to all of them how the address of a created record is told.
 */
import type { IncomingMessage } from "node:http";
import type { Transport } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Operation, streamsAnswers, streamsRequests } from "../contract/operation.ts";
import { endOf, successorReader } from "../policy/deprecation.ts";
import { methodOf } from "../request/http.ts";
import { prepareValidation } from "../validation/validate.ts";
import { admission, arrivalTimer, bodyReader } from "./admission.ts";
import type { HandlerOptions } from "./options.ts";
import type { Router } from "./router.ts";
import { streamHandler } from "./streams.ts";
import { unaryHandler } from "./unary.ts";
import { uploadHandler } from "./uploads.ts";

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
 * paths: there an operation goes first. The endpoints may come later.
 */
export function findOperations(
  app: FastifyInstance,
  router: Router,
  endpoints: ReadonlyMap<Operation, Endpoint>,
): void {
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
  app.decorateRequest("endingHeaders", {
    getter() {
      return this.operation && endpoints.get(this.operation)?.endingHeaders;
    },
  });
}

export interface RouteOptions extends Omit<HandlerOptions, "transport" | "addressOf" | "read" | "inTime"> {
  readonly services: readonly { readonly operations: readonly Operation[]; readonly transport: Transport }[];
  readonly router: Router;
}

/** Registers the route of the operations of all services, and adds what each does with its requests to `endpoints`. */
export async function registerOperations(
  app: FastifyInstance,
  endpoints: Map<Operation, Endpoint>,
  options: RouteOptions,
): Promise<void> {
  const { services, router, limits, clock } = options;
  const { verbs } = router;
  const operations = services.flatMap((service) => service.operations);
  app.removeAllContentTypeParsers();
  const streaming = new Set(operations.filter(streamsRequests));
  const inTime = arrivalTimer(limits, clock, streaming.size > 0);
  const read = bodyReader(limits, inTime);
  app.addContentTypeParser("*", (request: FastifyRequest, payload: IncomingMessage) =>
    // A stream is read by who serves it.
    request.operation && streaming.has(request.operation) ? Promise.resolve() : read(request, payload),
  );
  await prepareValidation(operations.map(({ method }) => method.input));
  const addressOf = recordAddress(operations, options);
  for (const { operations, transport } of services)
    for (const operation of operations)
      endpoints.set(operation, endpointOf(operation, { ...options, transport, addressOf, read, inTime }));
  for (const verb of verbs) if (!app.supportedMethods.includes(verb)) app.addHttpMethod(verb, { hasBody: true });
  const endpoint = ({ raw }: FastifyRequest) =>
    endpoints.get(((raw as Searched)[FOUND] as Found).operation) as Endpoint;
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

/** Verbs whose bodies Fastify does not read. */
const WITHOUT_BODY: readonly string[] = ["GET", "HEAD", "TRACE"];

function endpointOf(operation: Operation, options: HandlerOptions): Endpoint {
  const { read } = options;
  const takesStream = streamsRequests(operation);
  const answer = handlerFor(operation, options);
  return {
    ...admission(operation, options),
    handle(request, reply) {
      if (!operation.body || takesStream || !WITHOUT_BODY.includes(request.method)) return answer(request, reply);
      return read(request, request.raw).then((body) => {
        request.body = body;
        return answer(request, reply);
      });
    },
  };
}

function handlerFor(operation: Operation, options: HandlerOptions): Endpoint["handle"] {
  if (streamsAnswers(operation)) return streamHandler(operation, options);
  return operation.method.methodKind === "client_streaming"
    ? uploadHandler(operation, options)
    : unaryHandler(operation, options);
}

/** Compiles the address of the record at a path: the path, or after the sunset of its GET what that names as its successor. */
function recordAddress(
  operations: readonly Operation[],
  { router, basePath, deprecation, clock, codec }: RouteOptions,
): (path: string) => string {
  const ending = new Map(
    operations.flatMap((operation) => {
      const end = endOf(operation, deprecation);
      return end ? [[operation, { end, successorOf: successorReader(operation, basePath, codec) }]] : [];
    }),
  );
  return (path) => {
    const operation = router.find("GET", path);
    const found = operation && ending.get(operation);
    return (found && clock() >= found.end.getTime() && found.successorOf(path)) || path;
  };
}
