/** One order is one trace, from its caller to the last process that it changes, in five processes and in one. */
import { expect, test } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { startOtlpReceiver, treeOf } from "../harness/otlp-receiver.ts";
import { unfinishedIn } from "../harness/stores.ts";
import { by, startTraced, TRACE } from "./petstore.ts";

test.each([{ isSingle: false }, { isSingle: true }])("one tree: %j", { timeout: 120_000 }, async ({ isSingle }) => {
  await using receiver = await startOtlpReceiver();
  await using petstore = await startTraced(receiver, { isSingle });
  const petId = await petstore.newPet();
  const { status, headers } = await petstore.ask("POST", "/store/orders", { petId }, by(TRACE));
  expect([status, headers.get("x-request-id")]).toEqual([201, TRACE]);
  await eventually(() => petstore.statusOf(petId), "pending");
  // Inventory knows by then that Pet has been told, and what has not ended at its stop is in no trace.
  await eventually(() => unfinishedIn(petstore, "inventory"), []);
  expect(receiver.spans).toEqual([]);
  await petstore.stop();

  // As docs/traces.md shows it.
  expect(treeOf(receiver.spans, TRACE)).toEqual([
    "POST /store/orders",
    "  petstore.order.v1.OrderService/CreateOrder",
    "    petstore.order.v1.OrderService/CreateOrder",
    "      nextId order",
    "      petstore.internal.v1.InventoryInternalService/Reserve",
    "        petstore.internal.v1.InventoryInternalService/Reserve",
    "          inventory.publish",
    "            petstore.internal.v1.PetInternalService/ApplyStatuses",
    "              petstore.internal.v1.PetInternalService/ApplyStatuses",
    "                update pets",
    "          update inventory",
    "      update orders",
  ]);
  const services = new Set(receiver.spans.filter(({ traceId }) => traceId === TRACE).map(({ service }) => service));
  expect([...services].toSorted()).toEqual(isSingle ? ["petstore"] : ["gateway", "inventory", "order", "pet"]);
  expect(receiver.requests[0]).toMatchObject({ path: "/v1/traces", "content-type": "application/x-protobuf" });
});
