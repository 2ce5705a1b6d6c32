/** `/healthz`: this process is alive. `/readyz`: it can serve, as long as any service does; it names those that don't. */

import type { Replica } from "@petstore/rpc/client/replica";
import type { Runtime } from "@petstore/runtime/clock";
import type { FastifyInstance } from "fastify";

/** Services are probed at most once in this time, in milliseconds: anybody may request `/readyz`, as often as they like. */
const MAX_AGE_MS = 250;
/** How long a replica may take to answer, in milliseconds: a probe of Kubernetes gives up after a second. */
const PATIENCE_MS = 900;
const probe = { config: { answersAnyHost: true } };

export interface ReadinessOptions extends Pick<Runtime, "clock"> {
  readonly services: readonly { readonly name: string; replicas(): readonly Pick<Replica, "isServing">[] }[];
  /** False from the moment the gateway is told to stop: no more requests are to be sent to it. */
  readonly isAccepting: () => boolean;
}

/** What `/readyz` answers. */
export function createReadiness({ services, isAccepting, clock }: ReadinessOptions) {
  /**
   * Names replicas by their position among the addresses (pet-1, pet-2), which are not public themselves.
   */
  async function look({ name, replicas }: ReadinessOptions["services"][number]) {
    const serving = await Promise.all(replicas().map((replica) => replica.isServing(PATIENCE_MS)));
    if (!serving.includes(true)) return { failing: [name], degraded: [] };
    return { failing: [], degraded: serving.flatMap((serves, i) => (serves ? [] : [`${name}-${i + 1}`])) };
  }
  const state = atMostEvery(MAX_AGE_MS, () => Promise.all(services.map(look)), clock);
  return async () => {
    const found = isAccepting() ? await state() : [];
    const seen = isAccepting() ? found : [{ failing: ["gateway"], degraded: [] }];
    const failing = seen.flatMap((service) => service.failing);
    const degraded = seen.flatMap((service) => service.degraded);
    const ready = failing.length < seen.length;
    const body = { status: ready ? "ready" : "not ready", failing, ...(degraded.length > 0 && { degraded }) };
    return { status: ready ? 200 : 503, body };
  };
}

export const health =
  (basePath: string, readiness: ReturnType<typeof createReadiness>) =>
  async (app: FastifyInstance): Promise<void> => {
    app.get(`${basePath}/healthz`, probe, async (_, reply) =>
      reply.header("cache-control", "no-store").send({ status: "ok" }),
    );

    app.get(`${basePath}/readyz`, probe, async (_, reply) => {
      const { status, body } = await readiness();
      return reply.code(status).header("cache-control", "no-store").send(body);
    });
  };

/** Returns the last result, and looks again only when that is older than `ms`; never runs `look` twice at a time. */
function atMostEvery<T>(ms: number, look: () => Promise<T>, clock: Runtime["clock"]): () => Promise<T> {
  let found: Promise<T> | undefined;
  let lookedAt: number | undefined;
  return () => {
    if (!found || (lookedAt !== undefined && clock() - lookedAt >= ms)) {
      const startedAt = clock();
      lookedAt = undefined;
      found = look().finally(() => {
        lookedAt = startedAt;
      });
    }
    return found;
  };
}
