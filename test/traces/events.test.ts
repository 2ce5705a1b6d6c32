/** Events name the trace of the request that has changed the record. */
import { createClient } from "@connectrpc/connect";
import { readTraceparent } from "@petstore/trace/context";
import { expect, test } from "vitest";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { startOtlpReceiver } from "../harness/otlp-receiver.ts";
import { by, startTraced } from "./petstore.ts";

const [ORDERED, DELETED] = ["1".repeat(32), "2".repeat(32)];

test("in the gateway's stream, and in that of a service", { timeout: 120_000 }, async () => {
  await using receiver = await startOtlpReceiver();
  await using petstore = await startTraced(receiver);
  const petId = await petstore.newPet();
  const over = new AbortController();
  const { signal } = over;
  const stream = await fetch(`${petstore.http}/events`, { headers: { accept: "application/x-ndjson" }, signal });
  const told = new Map<string, string | undefined>();
  const events = (async () => {
    let text = "";
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines.filter((one) => one.startsWith("{"))) {
        const { data: event } = JSON.parse(line) as { data?: { type?: string; traceparent?: string } };
        if (event?.type) told.set(event.type, readTraceparent(event.traceparent)?.traceId);
      }
    }
  })().catch(() => {});
  const watched: (string | undefined)[] = [];
  const begun = Promise.withResolvers<void>();
  const watching = (async () => {
    const orders = createClient(OrderService, petstore.transport(OrderService));
    for await (const { response } of orders.watchOrders({ snapshot: true }, { signal })) {
      if (response.case === "synced") begun.resolve();
      if (response.case === "event") watched.push(readTraceparent(response.value.traceparent)?.traceId);
    }
  })().catch(begun.reject);
  await begun.promise;

  const { record } = await petstore.ask<{ id: number }>("POST", "/store/orders", { petId }, by(ORDERED));
  await expect.poll(() => watched).toEqual([ORDERED]);
  await petstore.ask("DELETE", `/store/orders/${record.id}`, undefined, by(DELETED));
  await expect.poll(() => watched).toEqual([ORDERED, DELETED]);
  await expect
    .poll(() => Object.fromEntries(told))
    .toEqual({
      "petstore.order.created.v1": ORDERED,
      "petstore.order.deleted.v1": DELETED,
      "petstore.inventory.updated.v1": DELETED,
      "petstore.pet.updated.v1": DELETED,
    });
  over.abort();
  await Promise.all([events, watching]);
});
