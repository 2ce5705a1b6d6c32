/** `/healthz`: this process is alive. `/readyz`: every service that it needs has a replica that takes calls. */
import type { FastifyInstance } from "fastify";
import type { Replica } from "#shared/rpc/replica.ts";

export interface HealthOptions {
  readonly basePath: string;
  readonly services: readonly { readonly name: string; readonly replicas: readonly Pick<Replica, "isServing">[] }[];
  /** False from the moment the gateway is told to stop: no more requests are to be sent to it. */
  readonly isAccepting: () => boolean;
}

export const health =
  ({ basePath, services, isAccepting }: HealthOptions) =>
  async (app: FastifyInstance): Promise<void> => {
    /** Replicas are named by their place in the list of addresses, which itself is nobody's business: pet-1, pet-2. */
    async function look({ name, replicas }: HealthOptions["services"][number]) {
      const serving = await Promise.all(replicas.map((replica) => replica.isServing()));
      if (!serving.includes(true)) return { failing: [name], degraded: [] };
      return { failing: [], degraded: serving.flatMap((serves, i) => (serves ? [] : [`${name}-${i + 1}`])) };
    }

    app.get(`${basePath}/healthz`, async (_, reply) =>
      reply.header("cache-control", "no-store").send({ status: "ok" }),
    );

    app.get(`${basePath}/readyz`, async (_, reply) => {
      const seen = isAccepting() ? await Promise.all(services.map(look)) : [{ failing: ["gateway"], degraded: [] }];
      const failing = seen.flatMap((service) => service.failing);
      const degraded = seen.flatMap((service) => service.degraded);
      const ready = failing.length === 0;
      return reply
        .code(ready ? 200 : 503)
        .header("cache-control", "no-store")
        .send({ status: ready ? "ready" : "not ready", failing, ...(degraded.length > 0 && { degraded }) });
    });
  };
