/** Records every request once, at the end of its answer: how it was answered, refused, or left by its caller. */
import type { IncomingMessage, RequestListener } from "node:http";
import type { DescService } from "@bufbuild/protobuf";
import { methodName, whenOver } from "@petstore/rpc/http/answers";
import { HttpError, type Operation, operationsOf } from "connect-transcoder";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Metrics } from "../processes/metrics.ts";

/**
 * A request, as Fastify has it if it comes that far, and the template of its path once that is known. Without one it asks for
 * nothing that there is.
 */
export type Noted = IncomingMessage & { arrived?: FastifyRequest; route?: string };

declare module "fastify" {
  interface FastifyInstance {
    /** Counts a request that a layer refused. */
    countRefusal(error: unknown): void;
  }
}

export function recordRequests(
  { requests, deprecated, countRefusal, now }: Metrics,
  { basePath, services }: { readonly basePath: string; readonly services: readonly { readonly desc: DescService }[] },
) {
  const routeOf = ({ path }: Operation) => basePath + path;

  function record(request: Noted, status: number, since: number): void {
    const { method, route = "", arrived } = request;
    requests.of(methodName(method), route, `${status}`).record((now() - since) / 1000, arrived?.trace);
  }

  return {
    /** In front of all that answers. */
    recorded:
      (next: RequestListener): RequestListener =>
      (request: Noted, response) => {
        const since = now();
        whenOver(request, response, (status) => record(request, status, since));
        next(request, response);
      },
    /** Notes what a request asks for that Fastify does not see. */
    note(request: Noted, operation: Operation): void {
      request.route = routeOf(operation);
      countRefusal("OVERLOADED");
    },
    /** Notes what all others ask for. */
    layer(app: FastifyInstance): void {
      app.decorate("countRefusal", (error) => {
        if (error instanceof HttpError) countRefusal(error.code);
      });
      // At zero from the start: Prometheus takes the first value of a series for no increase.
      for (const operation of services.flatMap(({ desc }) => operationsOf(desc)))
        if (operation.deprecation) deprecated.of(routeOf(operation));
      app.addHook("onRequest", (request, _reply, done) => {
        const { operation } = request;
        const route = operation ? routeOf(operation) : request.routeOptions.url;
        const noted: Noted = request.raw;
        noted.arrived = request;
        if (route !== undefined) noted.route = route;
        if (operation?.deprecation) deprecated.of(routeOf(operation)).add();
        done();
      });
      app.addHook("onError", (_request, _reply, error, done) => {
        app.countRefusal(error);
        done();
      });
    },
  };
}
