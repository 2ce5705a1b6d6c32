/** Neither a handler nor a caller can tell which way a call came: by itself, over a link, or from the same process. */
import { type CallOptions, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import type { Call } from "../call.ts";
import { DomainError } from "../domain-error.ts";
import { hello, METHOD, openTo, secret, startService } from "../fixtures/linked.ts";
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";
import { inProcessTransport } from "../in-process/transport.ts";
import { implement } from "../server/handlers.ts";

const seen: unknown[] = [];
const handlers: Record<string, (request: { categoryId: bigint }, call: Call) => unknown> = {
  getCategory({ categoryId }, { headers, requestId, caller, responseHeaders, deadline }) {
    const fields = ["x-more", "x-request-id", "x-internal-caller"].map((name) => headers.get(name));
    seen.push({ categoryId, fields, requestId, caller, hasDeadline: Number.isFinite(deadline) });
    responseHeaders.append("x-answer", "one");
    responseHeaders.append("x-answer", "two");
    if (categoryId === 2n) throw new DomainError("CATEGORY_NOT_FOUND", "no 2", { path: "category_id" });
    if (categoryId === 3n) throw new DomainError("CONFLICT", "ä", { metadata: { epoch: "7" } });
    if (categoryId === 4n) throw new TypeError("a bug");
    if (categoryId === 5n) throw new ConnectError("another service");
    return { category: { id: categoryId, name: "ä" } };
  },
};
const unused = { get: (known: typeof handlers, name: string) => known[name] ?? (() => ({})) };

/** What came of a call: the message and headers, or the failure. */
async function outcome(call: (options: CallOptions) => Promise<unknown>) {
  let header: string | null | undefined;
  let trailer: readonly string[] | undefined;
  const options = {
    headers: { "x-more": "more", "x-request-id": "a-request", "x-internal-caller": "ann" },
    timeoutMs: 5000,
    onHeader: (headers: Headers) => {
      header = headers.get("x-answer");
    },
    onTrailer: (trailers: Headers) => {
      trailer = [...trailers.keys()].filter((name) => !name.startsWith("grpc-"));
    },
  };
  try {
    return { answer: await call(options), header, trailer };
  } catch (thrown) {
    const { code, rawMessage, details } = ConnectError.from(thrown);
    return { code, rawMessage, details };
  }
}

test("a call has the same outcome, and its handler sees the same", async () => {
  const implementation = implement(CategoryService, new Proxy(handlers, unused) as never);
  const { url, dispatcher } = await startService(undefined, implementation);
  const run = async (transport: Transport) => {
    seen.length = 0;
    const categories = createClient(CategoryService, transport);
    const orders = createClient(OrderService, transport);
    const outcomes = [];
    for (const categoryId of [1n, 2n, 3n, 4n, 5n])
      outcomes.push(await outcome((options) => categories.getCategory({ categoryId }, options)));
    outcomes.push(await outcome((options) => categories.createCategory({ category: { name: "" } }, options)));
    outcomes.push(await outcome((options) => orders.getOrder({ orderId: 1n }, options)));
    return { outcomes, seen: [...seen] };
  };
  const linked = await run(openTo(url));
  expect([linked.outcomes.length, linked.seen.length]).toEqual([7, 5]);
  expect(linked).toEqual(await run(openTo(url, { link: false })));
  expect(linked).toEqual(await run(inProcessTransport(() => dispatcher)));
});

test("a link is ordinary gRPC: a client that was not made for it can use it", async () => {
  const { url } = await startService();
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  async function* requests() {
    const call = (id: number, method: number) => ({ id, method, message: new Uint8Array([8, id]) });
    yield hello;
    yield {
      methods: [
        { number: 1, name: METHOD },
        { number: 2, name: "a.b.C/D" },
      ],
      calls: [call(1, 1), call(2, 2)],
    };
    await answered;
  }
  const client = createClient(LinkService, createGrpcTransport({ baseUrl: url }));
  const outcomes = new Map<number, string | undefined>();
  for await (const { answers } of client.link(requests(), { headers: { "x-internal-secret": secret } })) {
    for (const { id, outcome } of answers) outcomes.set(id, outcome.case);
    if (outcomes.size === 2) resolve();
  }
  expect([...outcomes].sort()).toEqual([
    [1, "message"],
    [2, "failure"],
  ]);
});
