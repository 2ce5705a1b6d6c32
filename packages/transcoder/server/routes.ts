/** Registers the operations of all services, each with what its requests go through. */
import type { IncomingMessage } from "node:http";
import type { Transport } from "@connectrpc/connect";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { streamsAnswers, streamsRequests } from "../contract/kinds.ts";
import type { Operation } from "../contract/operation.ts";
import type { TellUnknown } from "../response/unknown-values.ts";
import { prepareValidation } from "../validation/validate.ts";
import { admission } from "./admission.ts";
import { arrivalTimer, bodyReader, type InTime, type ReadBody } from "./bodies.ts";
import { type Endpoint, routeOperations } from "./dispatch.ts";
import type { Limits, transcoderDefaults } from "./options.ts";
import { recordAddress } from "./record-address.ts";
import type { Router } from "./router.ts";
import { type StreamOptions, streamHandler } from "./streams.ts";
import { unaryHandler } from "./unary.ts";
import { uploadHandler } from "./uploads.ts";

export interface HandlerOptions extends ReturnType<typeof transcoderDefaults> {
  /** The way to the operation's service. */
  readonly transport: Transport;
  readonly limits: Limits;
  readonly clock: () => number;
  readonly tellUnknown: TellUnknown;
}

export interface RouteOptions extends Omit<StreamOptions, "transport"> {
  readonly services: readonly { readonly operations: readonly Operation[]; readonly transport: Transport }[];
  readonly router: Router;
}

export interface OperationOptions extends StreamOptions {
  /** Where the record at a path is found. */
  readonly addressOf: (path: string) => string;
  /** Reads a body that is one message. */
  readonly read: ReadBody;
  readonly inTime: InTime;
}

/** Verbs whose bodies Fastify does not read. */
const WITHOUT_BODY: readonly string[] = ["GET", "HEAD", "TRACE"];

/** Registers the operations of all services. Returns what each does with its requests. */
export async function registerOperations(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<Map<Operation, Endpoint>> {
  const { services, router, limits, clock } = options;
  const operations = services.flatMap((service) => service.operations);
  app.removeAllContentTypeParsers();
  const inTime = arrivalTimer(limits, clock, operations.some(streamsRequests));
  const read = bodyReader(limits, inTime);
  app.addContentTypeParser("*", (request: FastifyRequest, payload: IncomingMessage) =>
    // A stream is read by who serves it.
    request.operation && streamsRequests(request.operation) ? Promise.resolve() : read(request, payload),
  );
  await prepareValidation(operations.map(({ method }) => method.input));
  const addressOf = recordAddress(operations, router, options);
  const endpoints = new Map(
    services.flatMap(({ operations, transport }) =>
      operations.map(
        (operation) => [operation, endpointOf(operation, { ...options, transport, addressOf, read, inTime })] as const,
      ),
    ),
  );
  routeOperations(app, router, (operation) => endpoints.get(operation) as Endpoint);
  return endpoints;
}

function endpointOf(operation: Operation, options: OperationOptions): Endpoint {
  const { read } = options;
  const takesStream = streamsRequests(operation);
  const answer: Endpoint["handle"] = handlerFor(operation, options);
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

function handlerFor(operation: Operation, options: OperationOptions): Endpoint["handle"] {
  if (streamsAnswers(operation)) return streamHandler(operation, options);
  return operation.method.methodKind === "client_streaming"
    ? uploadHandler(operation, options)
    : unaryHandler(operation, options);
}
