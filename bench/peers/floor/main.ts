/** Answers every request with a constant of the right kind. */
import { fastify } from "fastify";
import { petOf } from "../../seed/pets.ts";

const { quantity: _, ...pet } = petOf(1);
const page = Array.from({ length: 20 }, () => pet);

const app = fastify({ logger: true, disableRequestLogging: true });
app.addHook("onResponse", async ({ method, url, log }, reply) =>
  log.info({ method, path: url, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }),
);
app.get("/pets/:petId", async () => pet);
app.get("/pets", async () => page);
app.post("/store/orders", async (_request, reply) =>
  reply.code(201).send({ id: 1, petId: 1, quantity: 1, complete: false }),
);
await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
