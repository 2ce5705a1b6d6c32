/** The Fastify plugin: annotated services as HTTP/JSON. */
import type { FastifyInstance } from "fastify";
import { fastifyPlugin } from "fastify-plugin";
import type { Operation } from "../contract/operation.ts";
import { selectServed } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import type { Errors } from "../errors/forms.ts";
import { openApiDocument } from "../openapi/document.ts";
import { jsonText } from "../openapi/json.ts";
import type { Sources } from "../openapi/sources.ts";
import { logUnknownValues } from "../response/scalars.ts";
import { checkHeads, markArrivals, mayTakeStreams } from "./arrival.ts";
import { errorAnswers } from "./error-answers.ts";
import { dropLeftover, takeOddRequests } from "./node-http.ts";
import { serverDefaults, type TranscoderOptions, transcoderDefaults } from "./options.ts";
import { createRouter } from "./router.ts";
import { type Endpoint, findOperations, registerOperations } from "./routes.ts";
import { openStreams } from "./streams.ts";
import { answerUnrouted, reportHidden } from "./unrouted.ts";

/**
 * Serves the operations of services, and answers whatever else comes to the server that it is registered on: errors,
 * paths and methods that there are not, OPTIONS. It belongs to the whole server, so register it once, on the instance
 * that `fastify(serverOptions(options))` made, behind what looks at every request (CORS) and before routes of your own.
 *
 * What can't be served is left out, and the log says why: an RPC whose annotations ask for what there is not, and services
 * with operations that no request can tell apart. With the option `strict` registering fails with an Error instead. Which
 * operations no request reaches, because a route of your own takes them all, is known when the server is ready: the log says
 * it, and with `strict` the server does not start.
 */
export const transcoder = fastifyPlugin(
  async (app: FastifyInstance, options: TranscoderOptions): Promise<void> => {
    const { limits, clock } = serverDefaults(options);
    const { last } = errorAnswers(options);
    const streams = openStreams();
    const tellUnknown = logUnknownValues(app.log);
    const common = { ...transcoderDefaults(options), limits, clock, streams, last, tellUnknown };
    const { served, refusals } = selectServed(options.services, options);
    if (options.strict && refusals.length > 0) throw new Error(refusals.join("\n"));
    for (const refusal of refusals) app.log.error(refusal);
    const operations = served.flatMap((service) => service.operations);
    const router = createRouter(operations, common.basePath);
    const endpoints = new Map<Operation, Endpoint>();
    takeOddRequests(app);
    markArrivals(app, options);
    findOperations(app, router, endpoints);
    // Node waits for requests that may be streams without a limit, whatever they are answered with and when.
    if (mayTakeStreams(options))
      app.addHook("onRequest", (request, reply, done) => {
        dropLeftover(request.raw, reply.raw, streams.isOver);
        done();
      });
    answerUnrouted(app, router);
    reportHidden(app, operations, common.basePath, (hidden) => {
      if (options.strict) throw new Error(hidden.join("\n"));
      for (const one of hidden) app.log.error(one);
    });
    checkHeads(app, limits);
    await app.register((scope) => registerOperations(scope, endpoints, { ...common, services: served, router }));
    app.addHook("preClose", streams.end);
    options.draining?.addEventListener("abort", streams.end, { once: true });
    serveDocument(app, options, operations);
  },
  { name: "connect-transcoder", fastify: "5.x" },
);

function serveDocument(app: FastifyInstance, options: TranscoderOptions, operations: readonly Operation[]): void {
  const { openApi } = options;
  if (!openApi) return;
  const { limits, apiVersion, errors } = serverDefaults(options);
  const { basePath = "", deprecation = {} } = options;
  const { path = "/openapi.json", ...told } = openApi;
  const files = filesBelow(operations.map(({ service }) => service.file));
  const document = openApiDocument(
    { ...told, ...documentedErrors(errors), operations, files, deprecation },
    { ...options, ...told, version: apiVersion, basePath, requestMs: limits.requestMs },
  );
  const text = jsonText(document);
  app.get(basePath + path, async (_, reply) => reply.type("application/json").send(text));
}

/** What the document needs to know of errors. A function's bodies are unknown: the document has the statuses alone. */
const documentedErrors = (errors: Errors): Pick<Sources, "reasons" | "errors"> =>
  typeof errors === "object"
    ? { reasons: errors.catalogue.reasons }
    : { errors: typeof errors === "string" ? errors : "unknown" };
