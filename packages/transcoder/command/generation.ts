/** One contract as it is served. When the contract changes, another generation takes its place. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import fastifyCors from "@fastify/cors";
import { type FastifyBaseLogger, fastify, LogController } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { serverOptions, type TranscoderOptions, transcoder } from "../index.ts";
import type { Settings } from "./flags.ts";
import { countOf, type Report } from "./report.ts";
import { type Telemetry, TRACE_HEADERS } from "./telemetry.ts";

export type Generation = Awaited<ReturnType<typeof openGeneration>>;

interface GenerationOptions {
  readonly settings: Settings;
  readonly services: readonly { readonly desc: DescService; readonly transport: Transport }[];
  readonly report: Report;
  readonly telemetry: Pick<Telemetry, "follow">;
  readonly log: FastifyBaseLogger;
  readonly isDraining: () => boolean;
}

/** @throws Error where the contract can't be served */
export async function openGeneration({ settings, services, report, telemetry, log, isDraining }: GenerationOptions) {
  const draining = new AbortController();
  const options: TranscoderOptions = {
    ...settings.library,
    allowHeaders: [...settings.library.allowHeaders, ...TRACE_HEADERS],
    services,
    draining: draining.signal,
    openApi: { title: settings.title },
  };
  let handle: RequestListener = () => {};
  const { clientErrorHandler, ...server } = serverOptions(options);
  const app = fastify({
    ...server,
    // It never listens: the port is there before the contract, and stays when that changes.
    serverFactory: (listener) => {
      handle = listener;
      return createServer();
    },
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
  });
  telemetry.follow(app);
  const { corsOrigins } = settings;
  if (corsOrigins.length > 0)
    await app.register(fastifyCors, {
      origin: corsOrigins.includes("*") ? "*" : corsOrigins,
      methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
      strictPreflight: false,
    });
  await app.register(transcoder, options);
  const page = docsPage(settings.title, report.operations);
  app.get("/docs", async (_, reply) => reply.type("text/html; charset=utf-8").send(page));
  app.get("/healthz", async (_, reply) =>
    reply.code(isDraining() ? 503 : 200).send({ status: isDraining() ? "draining" : "ok" }),
  );
  await app.ready();

  let open = 0;
  let isRetired = false;
  const done = Promise.withResolvers<void>();
  const closeIfDone = () => {
    if (isRetired && open === 0) done.resolve(app.close());
  };
  return {
    /** How many operations, for people. */
    served: countOf(report.operations),
    handle(request: IncomingMessage, response: ServerResponse): void {
      open++;
      response.once("close", () => {
        open--;
        closeIfDone();
      });
      handle(request, response);
    },
    /** Answers what can't be read as a request. */
    refuse: (error: Error, socket: Socket): void => clientErrorHandler?.call(app, error as never, socket),
    /** Ends its streams, in good order. */
    endStreams: () => draining.abort(),
    /** Another has taken its place: it closes when its last request is answered, and the promise resolves. */
    retire(): Promise<void> {
      isRetired = true;
      closeIfDone();
      return done.promise;
    },
  };
}

/** The page at /docs: what there is, in a list, and where the document is. */
function docsPage(title: string, operations: readonly Operation[]): string {
  const rows = operations.map(
    ({ verb, route, service, method }) =>
      `<tr><td>${escaped(verb)}<td><code>${escaped(route)}</code><td>${escaped(`${service.typeName}.${method.name}`)}`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color-scheme: light dark }
table { border-collapse: collapse } td, th { padding: .25rem 1rem .25rem 0; text-align: left; vertical-align: top }
</style>
<h1>${escaped(title)}</h1>
<p>The OpenAPI document is at <a href="openapi.json">openapi.json</a>.
<table>
<tr><th>Verb<th>Path<th>RPC
${rows.join("\n")}
</table>
</html>
`;
}

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
