/** Puts the monolith together and listens. COALESCE=on lets requests share queries. */
import { enableCompileCache } from "node:module";

enableCompileCache();

const { fastify } = await import("fastify");
const { connect } = await import("./database.ts");
const { createOrders } = await import("./orders.ts");
const { coalesced, direct } = await import("./reads.ts");
const { routes } = await import("./routes.ts");

const { MONGO_URL = "", DATABASE = "", PORT = "", COALESCE } = process.env;
const database = await connect(MONGO_URL, DATABASE);
const reads = COALESCE === "on" ? coalesced(direct(database)) : direct(database);

const app = fastify({ logger: true, disableRequestLogging: true });
// One line per request, when its answer is sent: Fastify's own log would have two.
app.addHook("onResponse", async ({ method, url, log }, reply) =>
  log.info({ method, path: url, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }),
);
app.register(routes, { reads, orders: createOrders(database) });
await app.listen({ host: "127.0.0.1", port: Number(PORT) });
