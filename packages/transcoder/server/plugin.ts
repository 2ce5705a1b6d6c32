/** The Fastify plugin: annotated services as HTTP/JSON. */
import type { FastifyInstance } from "fastify";
import { fastifyPlugin } from "fastify-plugin";
import { filesBelow } from "../contract/files.ts";
import { operationsOf } from "../contract/operations.ts";
import type { Errors } from "../errors/forms.ts";
import { HttpError } from "../errors/http-error.ts";
import { openApiDocument } from "../openapi/document.ts";
import { jsonText } from "../openapi/json.ts";
import type { Sources } from "../openapi/sources.ts";
import { checkSizes, hostProblem, transferProblem } from "../request/head.ts";
import { logUnknownValues } from "../response/unknown-values.ts";
import { markArrivals } from "./arrival.ts";
import { errorAnswers } from "./error-answers.ts";
import { takeOddRequests } from "./node-http.ts";
import { openStreams } from "./open-streams.ts";
import { serverDefaults, type TranscoderOptions, transcoderDefaults } from "./options.ts";
import { registerOperations } from "./routes.ts";
import { answerUnrouted } from "./unrouted.ts";

/**
 * Serves the operations of services, and answers whatever else comes to the server that it is registered on: errors,
 * paths and methods that there are not, OPTIONS. It belongs to the whole server, so register it once, on the instance
 * that `fastify(serverOptions(options))` made, behind what looks at every request (CORS) and before routes of your own.
 *
 * Registering fails with an Error when an annotation asks for what can't be served.
 */
export const transcoder = fastifyPlugin(
  async (app: FastifyInstance, options: TranscoderOptions): Promise<void> => {
    const { limits, clock } = serverDefaults(options);
    const { last } = errorAnswers(options);
    const streams = openStreams();
    const tellUnknown = logUnknownValues(app.log);
    const common = { ...transcoderDefaults(options), limits, clock, streams, last, tellUnknown };
    takeOddRequests(app);
    markArrivals(app, options);
    answerUnrouted(app);
    app.addHook("onRequest", (request, _, done) => {
      checkSizes(request, limits);
      const problem = hostProblem(request.raw);
      if (problem !== undefined) throw new HttpError("INVALID_HEADER", `Host: ${problem}`);
      const coding = transferProblem(request.raw);
      if (coding !== undefined) throw new HttpError("NOT_IMPLEMENTED", coding, { connection: "close" });
      done();
    });
    for (const { desc, transport } of options.services) {
      const operations = operationsOf(desc);
      await app.register((scope) => registerOperations(scope, { ...common, operations, transport }));
    }
    app.addHook("preClose", streams.end);
    options.draining?.addEventListener("abort", streams.end, { once: true });
    serveDocument(app, options);
  },
  { name: "connect-transcoder", fastify: "5.x" },
);

function serveDocument(app: FastifyInstance, options: TranscoderOptions): void {
  const { openApi, services } = options;
  if (!openApi) return;
  const { limits, apiVersion, errors } = serverDefaults(options);
  const { basePath, deprecation } = transcoderDefaults(options);
  const { path = "/openapi.json", docs = {}, examples, patchExamples, security, ...about } = openApi;
  const descs = services.map(({ desc }) => desc);
  const document = openApiDocument(
    {
      operations: descs.flatMap(operationsOf),
      ...documentedErrors(errors),
      docs,
      files: filesBelow(descs.map(({ file }) => file)),
      examples,
      patchExamples,
      deprecation,
      security,
    },
    { ...about, version: apiVersion, basePath, requestMs: limits.requestMs },
  );
  const text = jsonText(document);
  app.get(basePath + path, async (_, reply) => reply.type("application/json").send(text));
}

/** What the document says of errors. Of what a function makes it can say nothing but the statuses. */
const documentedErrors = (errors: Errors): Pick<Sources, "reasons" | "errors"> =>
  typeof errors === "object"
    ? { reasons: errors.catalogue.reasons }
    : { errors: typeof errors === "string" ? errors : "unknown" };
