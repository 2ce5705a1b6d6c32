/** One contract as it is served. When the contract changes, another generation takes its place. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import fastifyCors from "@fastify/cors";
import { type FastifyBaseLogger, fastify, LogController } from "fastify";
import { serverOptions, type TranscoderOptions, transcoder } from "../index.ts";
import { docsPage } from "./docs.ts";
import type { Settings } from "./flags.ts";
import type { Report } from "./report.ts";
import { type Telemetry, TRACE_HEADERS } from "./telemetry.ts";

export interface Generation {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Answers what can't be read as a request. */
  readonly refuse: (error: Error, socket: Socket) => void;
  /** Ends its streams, in good order. */
  readonly endStreams: () => void;
  /** Another has taken its place: it closes when its last request is answered, and the promise resolves. */
  readonly retire: () => Promise<void>;
}

export interface GenerationOptions {
  readonly settings: Settings;
  readonly services: readonly { readonly desc: DescService; readonly transport: Transport }[];
  readonly report: Report;
  readonly telemetry: Pick<Telemetry, "follow">;
  readonly log: FastifyBaseLogger;
  readonly isDraining: () => boolean;
}

/** @throws Error where the contract can't be served */
export async function openGeneration(given: GenerationOptions): Promise<Generation> {
  const { settings, services, report, telemetry, log, isDraining } = given;
  const draining = new AbortController();
  const options: TranscoderOptions = {
    ...settings.library,
    allowHeaders: [...(settings.library.allowHeaders ?? []), ...TRACE_HEADERS],
    services,
    draining: draining.signal,
    openApi: { title: settings.title },
  };
  let handle: Generation["handle"] = () => {};
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
  if (settings.corsOrigins.length > 0) {
    const all = settings.corsOrigins.includes("*");
    await app.register(fastifyCors, {
      origin: all ? "*" : [...settings.corsOrigins],
      methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
      strictPreflight: false,
    });
  }
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
    handle(request, response) {
      open++;
      response.once("close", () => {
        open--;
        closeIfDone();
      });
      handle(request, response);
    },
    refuse: (error, socket) => clientErrorHandler?.call(app, error as never, socket),
    endStreams: () => draining.abort(),
    retire() {
      isRetired = true;
      closeIfDone();
      return done.promise;
    },
  };
}
