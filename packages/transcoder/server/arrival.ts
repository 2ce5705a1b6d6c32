/** Notes when a request arrives, and sets the headers that all answers have. */
import type { FastifyInstance } from "fastify";
import { HttpError } from "../errors/http-error.ts";
import { restoreMethod } from "../request/head.ts";
import { commonHeaders } from "./common-headers.ts";
import { errorAnswers } from "./error-answers.ts";
import { type ServerOptions, serverDefaults } from "./options.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** When the request arrived, on the server's clock. */
    arrivedAt: number;
    /** The id of the request in whose name the service was called: of several that are answered by one call, the first. */
    calledAs: string;
  }
}

/** For a request whose time was over before all of it was there. */
export const arrivedTooLate = (): HttpError =>
  new HttpError("REQUEST_TIMEOUT", "The time for the request was over when it had arrived. Nothing was done.");

/**
 * Notes when requests arrive, sets the headers of all answers, and sends errors in the form that the options say. The plugin
 * does this itself. Call it first if another plugin, such as CORS, is registered before: then its answers have all this, too.
 */
export function markArrivals(app: FastifyInstance, options: ServerOptions): void {
  if (app.hasRequestDecorator("arrivedAt")) return;
  const { apiVersion, clock } = serverDefaults(options);
  app.setErrorHandler(errorAnswers(options).send);
  app.decorateRequest("arrivedAt", 0);
  app.decorateRequest("calledAs", "");
  app.addHook("onRequest", (request, reply, done) => {
    restoreMethod(request.raw);
    request.arrivedAt = clock();
    reply.headers(commonHeaders(request.id, apiVersion));
    done();
  });
}
