/** What every request gets when it arrives, and every answer says of it. */
import type { FastifyInstance } from "fastify";
import { REQUEST_ID_HEADER } from "../request/request-id.ts";
import { type ServerOptions, serverDefaults } from "./options.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** When the request arrived, on the server's clock. */
    arrivedAt: number;
  }
}

export const commonHeaders = (requestId: string, apiVersion: string): Record<string, string> => ({
  [REQUEST_ID_HEADER]: requestId,
  "api-version": apiVersion,
});

/**
 * Notes when a request arrives, and names request and version in its answer. The transcoder does so itself; call it before
 * plugins that answer requests before the transcoder sees them, as CORS does, if their answers are to say it too.
 */
export function markArrivals(app: FastifyInstance, options: ServerOptions): void {
  if (app.hasRequestDecorator("arrivedAt")) return;
  const { apiVersion, clock } = serverDefaults(options);
  app.decorateRequest("arrivedAt", 0);
  app.addHook("onRequest", (request, reply, done) => {
    request.arrivedAt = clock();
    reply.headers(commonHeaders(request.id, apiVersion));
    done();
  });
}
