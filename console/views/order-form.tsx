/** Places an order, for a pet that is chosen already or for any. */
import type { Pet } from "@petstore/client";
import { useMemo } from "preact/hooks";
import { notify } from "../notices.ts";
import { dateTime, integer, integer32 } from "../parts/field-errors.ts";
import { type FieldSpec, RecordForm, type Values } from "../parts/form.tsx";
import { createKeys, randomKey } from "../parts/idempotency-key.ts";
import { petstore } from "../petstore.ts";
import { written } from "../records/written.ts";

const fields: readonly FieldSpec[] = [
  {
    name: "petId",
    label: "Pet",
    kind: "number",
    hint: "Its number. An order without one takes nothing from the stock.",
  },
  { name: "quantity", label: "Quantity", kind: "number", hint: "Left empty it is 1." },
  {
    name: "shipDate",
    label: "Ship date",
    kind: "moment",
    hint: "In the time zone of this browser. May be left empty.",
  },
  { name: "complete", label: "Complete at once", kind: "check", hint: "When the customer has everything already." },
];

interface OrderFormProps {
  readonly pet?: Pet;
  readonly onClose: () => void;
}

export function OrderForm({ pet, onClose }: OrderFormProps) {
  const underKey = useMemo(() => createKeys(randomKey), []);
  async function submit(values: Values): Promise<void> {
    const wanted = orderOf(values);
    const order = await underKey(values, (idempotencyKey) => petstore.orders.create(wanted, { idempotencyKey }));
    written("order", order);
    notify(`Order ${order.id} is placed.`);
  }
  return (
    <RecordForm
      title={pet ? `Order ${pet.name}` : "Place an order"}
      submitLabel="Place order"
      fields={fields}
      initial={pet ? { petId: `${pet.id}` } : {}}
      fieldOf={{
        PET_NOT_FOUND: "petId",
        PET_NOT_AVAILABLE: "petId",
        TOO_MANY_OPEN_ORDERS: "petId",
        INSUFFICIENT_STOCK: "quantity",
      }}
      submit={submit}
      onClose={onClose}
    />
  );
}

const orderOf = ({ petId = "", quantity = "", shipDate = "", complete }: Values) => ({
  ...(petId !== "" && { petId: integer("petId", petId) }),
  ...(quantity !== "" && { quantity: integer32("quantity", quantity, 1) }),
  ...(shipDate !== "" && { shipDate: dateTime("shipDate", shipDate) }),
  ...(complete === "true" && { complete: true }),
});
