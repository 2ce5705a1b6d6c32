/** kill -9 in the middle of a request: what others finish of it later leads back to its trace. */
import { expect, test } from "vitest";
import type { ServiceName } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import { startOtlpReceiver, treeOf } from "../harness/otlp-receiver.ts";
import { by, startTraced, TRACE } from "./petstore.ts";

test.each<[string, ServiceName, string, (pet: number) => object, string]>([
  ["an order whose units are held", "order", "order.reserved-stock", (petId) => ({ petId }), "inventory.reservations"],
  ["a pet whose stock is not open", "pet", "pet.creating", () => ({ name: "Bea", categoryId: 1 }), "pet.recovery"],
])("%s", { timeout: 180_000 }, async (_, service, failpoint, body, recovery) => {
  await using receiver = await startOtlpReceiver();
  await using petstore = await startTraced(receiver);
  const pet = await petstore.newPet();
  await petstore.arm(service, failpoint);
  const path = service === "order" ? "/store/orders" : "/pets";
  const { status } = await petstore.ask("POST", path, body(pet), by(TRACE));
  expect(status).toBe(503);
  await petstore.ended(service);
  await petstore.start(service);
  if (service === "order") await eventually(() => petstore.statusOf(pet), "available");
  else
    await eventually(async () => {
      const { record } = await petstore.ask<{ name: string; status: string }[]>("GET", "/pets?limit=1");
      return record.map(({ name, status }) => [name, status]);
    }, [["Bea", "available"]]);
  await petstore.stop();

  // What the killed process had not sent is lost, and its caller says that it failed.
  const tree = treeOf(receiver.spans, TRACE);
  expect(tree[0]).toBe(`POST ${path}`);
  // A worker may come to the same record twice.
  const recovered = receiver.spans.filter(({ name }) => name === recovery);
  expect(new Set(recovered.flatMap(({ links }) => links.map(({ traceId }) => traceId)))).toEqual(new Set([TRACE]));
  for (const { traceId, links } of recovered) {
    expect([traceId === TRACE, links.length]).toEqual([false, 1]);
    expect(treeOf(receiver.spans, traceId).length).toBeGreaterThan(1);
  }
});
