/** The HTTP interface. From these schemas fast-json-stringify writes answers and Ajv validates requests. */
import type { FastifyInstance } from "fastify";
import type { Pet } from "./database.ts";
import type { Order, Refusal } from "./orders.ts";
import type { Page, Reads } from "./reads.ts";

const id = { type: "integer" } as const;
const status = { type: "string", enum: ["available", "pending", "sold"] } as const;
const pet = { type: "object", properties: { id, name: { type: "string" }, categoryId: id, status } } as const;
const order = {
  type: "object",
  properties: { id, petId: id, quantity: { type: "integer" }, complete: { type: "boolean" } },
} as const;
const error = {
  type: "object",
  properties: { code: { type: "string" }, message: { type: "string" }, status: { type: "integer" } },
} as const;

const shown = ({ _id, name, categoryId, status }: Pet) => ({ id: _id, name, categoryId, status });

export interface RouteOptions {
  readonly reads: Reads;
  readonly placeOrder: (petId: number, quantity: number) => Promise<Order | Refusal>;
}

export async function routes(app: FastifyInstance, { reads, placeOrder }: RouteOptions): Promise<void> {
  app.setErrorHandler<Error & { validation?: unknown }>((failure, _request, reply) => {
    const status = failure.validation ? 400 : 500;
    if (status === 500) app.log.error(failure);
    const message = failure.validation ? failure.message : "Something went wrong here.";
    reply.code(status).send({ code: failure.validation ? "VALIDATION_FAILED" : "INTERNAL", message, status });
  });

  app.get<{ Params: { petId: number } }>(
    "/pets/:petId",
    { schema: { params: { type: "object", properties: { petId: id } }, response: { 200: pet, "4xx": error } } },
    async ({ params: { petId } }, reply) => {
      const found = await reads.get(petId);
      if (found) return shown(found);
      return reply.code(404).send({ code: "PET_NOT_FOUND", message: `No pet has the id ${petId}.`, status: 404 });
    },
  );

  const query = {
    type: "object",
    properties: {
      limit: { type: "integer", minimum: 1, maximum: 100, default: 100 },
      categoryId: id,
      status,
      pageToken: id,
    },
  } as const;
  app.get<{ Querystring: Omit<Page, "before"> & { pageToken?: number } }>(
    "/pets",
    { schema: { querystring: query, response: { 200: { type: "array", items: pet }, "4xx": error } } },
    async ({ query: { pageToken, ...page } }, reply) => {
      const found = await reads.list(pageToken === undefined ? page : { ...page, before: pageToken });
      const pets = found.slice(0, page.limit);
      const last = found.length > page.limit && pets.at(-1);
      if (last) {
        const asked = Object.entries({ ...page, pageToken: last._id }).map(([name, value]) => [name, `${value}`]);
        const next = new URLSearchParams(asked);
        reply.header("link", `</pets?${next}>; rel="next"`);
      }
      return pets.map(shown);
    },
  );

  const body = {
    type: "object",
    required: ["petId"],
    properties: { petId: id, quantity: { type: "integer", minimum: 1, default: 1 } },
  } as const;
  app.post<{ Body: { petId: number; quantity: number } }>(
    "/store/orders",
    { schema: { body, response: { 201: order, "4xx": error } } },
    async ({ body: { petId, quantity } }, reply) => {
      const placed = await placeOrder(petId, quantity);
      if ("code" in placed) return reply.code(placed.status).send(placed);
      const { _id, complete } = placed;
      return reply.code(201).header("location", `/store/orders/${_id}`).send({ id: _id, petId, quantity, complete });
    },
  );
}
