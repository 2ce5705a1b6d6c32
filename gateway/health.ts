/** `/healthz`: this process is alive. `/readyz`: so is every service that it needs. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#proto/health/v1/health_pb.ts";

/** Time for one service to answer whether it is ready. */
const CHECK_MS = 1000;

export interface HealthOptions {
  readonly basePath: string;
  readonly services: readonly { readonly name: string; readonly transport: Transport }[];
  /** False from the moment the gateway is told to stop: no more requests are to be sent to it. */
  readonly isAccepting: () => boolean;
}

export const health =
  ({ basePath, services, isAccepting }: HealthOptions) =>
  async (app: FastifyInstance): Promise<void> => {
    const checks = services.map(({ name, transport }) => {
      const client = createClient(Health, transport);
      return async () => {
        try {
          const { status } = await client.check({}, { timeoutMs: CHECK_MS });
          return status === Status.SERVING ? [] : [name];
        } catch {
          return [name];
        }
      };
    });

    app.get(`${basePath}/healthz`, async (_, reply) =>
      reply.header("cache-control", "no-store").send({ status: "ok" }),
    );

    app.get(`${basePath}/readyz`, async (_, reply) => {
      const failing = isAccepting() ? (await Promise.all(checks.map((check) => check()))).flat() : ["gateway"];
      const ready = failing.length === 0;
      return reply
        .code(ready ? 200 : 503)
        .header("cache-control", "no-store")
        .send({ status: ready ? "ready" : "not ready", failing });
    });
  };
