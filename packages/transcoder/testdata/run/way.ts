/** The ways on which cases run: what stands before the service, and how it is reached. */
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { DescService, FileRegistry } from "@bufbuild/protobuf";
import { createRouterTransport, type Transport } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { fastify } from "fastify";
import { reflectionOf, serveReflection } from "../../fixtures/reflection.ts";
import { serverOptions, type TranscoderOptions, transcoder } from "../../index.ts";
import { type Backend, genericBackend } from "./backend.ts";
import type { CaseOptions } from "./case.ts";
import { servicesOf } from "./contract.ts";

/** A gateway before a service. */
export interface Way {
  readonly backend: Backend;
  /** The port of a gateway with these options; opened when it is asked for, and closed when another is. */
  readonly portFor: (options: CaseOptions) => Promise<number>;
  readonly close: () => Promise<void>;
}

export interface WayKind {
  readonly name: string;
  /** Whether the way can be told these options. */
  readonly takes: (options: CaseOptions) => boolean;
  readonly open: (contract: FileRegistry) => Promise<Way>;
}

const takesAll = () => true;

/** The service is in the process of the gateway, and is reached without a network. */
export const IN_PROCESS: WayKind = {
  name: "in the process",
  takes: takesAll,
  async open(contract) {
    const backend = genericBackend(contract);
    // On a clock that stands still, no request arrives too late for its call.
    const gateways = gatewaysOf(servicesOf(contract), createRouterTransport(backend.routes), () => 0);
    return { backend, ...gateways };
  },
};

/** The service is reached by gRPC over HTTP/2. */
export const GRPC: WayKind = {
  name: "over gRPC",
  takes: takesAll,
  async open(contract) {
    return before(await grpcServer(contract), gatewaysByGrpc(contract));
  },
};

/** A service that runs apart from its gateways. */
export interface Served {
  readonly backend: Backend;
  readonly url: string;
  readonly close: () => Promise<void>;
}

type Gateways = Pick<Way, "portFor" | "close">;

export function before(server: Served, gatewaysAt: (url: string) => Gateways): Way {
  const { portFor, close } = gatewaysAt(server.url);
  return {
    backend: server.backend,
    portFor,
    async close() {
      await close();
      await server.close();
    },
  };
}

/** Gateways of the library, with the gRPC client of Connect. */
export const gatewaysByGrpc = (contract: FileRegistry) => (baseUrl: string) =>
  gatewaysOf(servicesOf(contract), createGrpcTransport({ baseUrl, readMaxBytes: 4 * 1024 * 1024 }));

/** The generic service as a gRPC server with reflection. */
export async function grpcServer(contract: FileRegistry): Promise<Served> {
  const { routes, ...backend } = genericBackend(contract);
  const adapter = connectNodeAdapter({
    routes(router) {
      routes(router);
      serveReflection(
        router,
        reflectionOf(() => contract),
        ["v1"],
      );
    },
  });
  const server = createServer(adapter);
  const sessions = new Set<{ destroy: () => void }>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    backend,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

/** A gateway of the library for each kind of options. */
export function gatewaysOf(descs: readonly DescService[], transport: Transport, clock?: () => number): Gateways {
  const services = descs.map((desc) => ({ desc, transport }));
  return onePerOptions(async (options) => {
    const given: TranscoderOptions = { ...options, services, clock };
    const app = fastify(serverOptions(given));
    await app.register(transcoder, given);
    await app.listen({ host: "127.0.0.1", port: 0 });
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
  });
}

/** Keeps one gateway at a time: that of the options that were asked for last. */
export function onePerOptions(
  open: (options: CaseOptions) => Promise<{ readonly port: number; readonly close: () => Promise<unknown> }>,
): Gateways {
  let current: { readonly key: string; readonly gateway: Awaited<ReturnType<typeof open>> } | undefined;
  const close = async () => {
    const last = current;
    current = undefined;
    await last?.gateway.close();
  };
  return {
    async portFor(options) {
      const key = JSON.stringify(options);
      if (current?.key === key) return current.gateway.port;
      await close();
      current = { key, gateway: await open(options) };
      return current.gateway.port;
    },
    close,
  };
}
