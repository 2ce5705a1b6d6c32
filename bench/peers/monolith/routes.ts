/** The HTTP interface. From these schemas fast-json-stringify writes answers and Ajv validates requests. */
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Pet } from "./database.ts";
import { type createOrders, notFound, type Order, type OrdersPage, type Refusal, STATUS } from "./orders.ts";
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

const ofOrder = { type: "object", properties: { orderId: id } } as const;

const shown = ({ _id, name, categoryId, status }: Pet) => ({ id: _id, name, categoryId, status });

const shownOrder = ({ _id, petId, quantity, complete }: Order) => ({ id: _id, petId, quantity, complete });

const refuse = (reply: FastifyReply, { code, message }: Refusal) =>
  reply.code(STATUS[code]).send({ code, message, status: STATUS[code] });

/** The first `limit` of the records. The address of the next page goes into the headers if there are more. */
function pageOf<T extends { readonly _id: number }>(
  found: readonly T[],
  { path, reply, ...asked }: { path: string; reply: FastifyReply; limit: number; [name: string]: unknown },
): T[] {
  const page = found.slice(0, asked.limit);
  const last = found.length > asked.limit && page.at(-1);
  if (last) {
    const query = Object.entries({ ...asked, pageToken: last._id }).map(([name, value]) => [name, `${value}`]);
    reply.header("link", `<${path}?${new URLSearchParams(query)}>; rel="next"`);
  }
  return page;
}

export interface RouteOptions {
  readonly reads: Reads;
  readonly orders: ReturnType<typeof createOrders>;
}

export async function routes(app: FastifyInstance, { reads, orders }: RouteOptions): Promise<void> {
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

  const paged = { limit: { type: "integer", minimum: 1, maximum: 100, default: 100 }, pageToken: id } as const;
  const query = { type: "object", properties: { ...paged, categoryId: id, status } } as const;
  app.get<{ Querystring: Omit<Page, "before"> & { pageToken?: number } }>(
    "/pets",
    { schema: { querystring: query, response: { 200: { type: "array", items: pet }, "4xx": error } } },
    async ({ query: { pageToken, ...page } }, reply) => {
      const found = await reads.list(pageToken === undefined ? page : { ...page, before: pageToken });
      return pageOf(found, { path: "/pets", reply, ...page }).map(shown);
    },
  );

  const body = {
    type: "object",
    required: ["petId"],
    properties: { petId: id, quantity: { type: "integer", minimum: 1, default: 1 } },
  } as const;
  app.post<{ Body: { petId: number; quantity: number }; Headers: { "idempotency-key"?: string } }>(
    "/store/orders",
    { schema: { body, response: { 201: order, "4xx": error } } },
    async ({ body: { petId, quantity }, headers: { "idempotency-key": key } }, reply) => {
      const placed = await orders.place(petId, quantity, key);
      if ("code" in placed) return refuse(reply, placed);
      return reply.code(201).header("location", `/store/orders/${placed._id}`).send(shownOrder(placed));
    },
  );

  app.get<{ Querystring: Omit<OrdersPage, "before"> & { pageToken?: number } }>(
    "/store/orders",
    {
      schema: {
        querystring: { type: "object", properties: { ...paged, petId: id } },
        response: { 200: { type: "array", items: order }, "4xx": error },
      },
    },
    async ({ query: { pageToken, ...page } }, reply) => {
      const found = await orders.list(pageToken === undefined ? page : { ...page, before: pageToken });
      return pageOf(found, { path: "/store/orders", reply, ...page }).map(shownOrder);
    },
  );

  app.get<{ Params: { orderId: number } }>(
    "/store/orders/:orderId",
    { schema: { params: ofOrder, response: { 200: order, "4xx": error } } },
    async ({ params: { orderId } }, reply) => {
      const found = await orders.get(orderId);
      return found ? shownOrder(found) : refuse(reply, notFound(orderId));
    },
  );

  const completion = { type: "object", required: ["complete"], properties: { complete: { const: true } } } as const;
  app.patch<{ Params: { orderId: number } }>(
    "/store/orders/:orderId",
    { schema: { params: ofOrder, body: completion, response: { 200: order, "4xx": error } } },
    async ({ params: { orderId } }, reply) => {
      const completed = await orders.complete(orderId);
      return "code" in completed ? refuse(reply, completed) : shownOrder(completed);
    },
  );

  app.delete<{ Params: { orderId: number } }>(
    "/store/orders/:orderId",
    { schema: { params: ofOrder, response: { "4xx": error } } },
    async ({ params: { orderId } }, reply) => {
      const refusal = await orders.cancel(orderId);
      return refusal ? refuse(reply, refusal) : reply.code(204).send();
    },
  );
}
