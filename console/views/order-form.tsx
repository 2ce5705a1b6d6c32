/** Places an order, for a pet that is chosen already or for any. */
import type { NewOrder, Pet } from "@petstore/client";
import { dateTime, integer32 } from "../parts/field-errors.ts";
import { type FieldSpec, RecordForm, type Values } from "../parts/form.tsx";
import { useKeys } from "../parts/idempotency-key.ts";
import { petstore } from "../petstore.ts";
import { written } from "../records/changes.ts";
import { idMeant, label } from "../records/names.ts";

export const shipDate: FieldSpec = {
  name: "shipDate",
  label: "Ship date",
  kind: "moment",
  hint: "In the time zone of this browser. May be left empty.",
};

const fields: readonly FieldSpec[] = [
  {
    name: "petId",
    label: "Pet",
    offered: "available pet",
    hint: "Type the beginning of its name; what is available is offered. Without a pet nothing is taken from the stock.",
  },
  { name: "quantity", label: "Quantity", kind: "number", hint: "Left empty it is 1." },
  shipDate,
  { name: "complete", label: "Complete at once: the customer has it already", kind: "check" },
];

interface OrderFormProps {
  readonly pet?: Pet;
  readonly onClose: () => void;
}

export function OrderForm({ pet, onClose }: OrderFormProps) {
  const underKey = useKeys();
  async function submit(values: Values): Promise<void> {
    const wanted = await orderOf(values, pet);
    const order = await underKey(wanted, (idempotencyKey) => petstore.orders.create(wanted, { idempotencyKey }));
    written("order", order, `Order ${order.id} is placed.`);
  }
  return (
    <RecordForm
      title={pet ? `Order ${pet.name}` : "Place an order"}
      submitLabel="Place order"
      fields={fields}
      initial={pet ? { petId: label(pet) } : {}}
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

const orderOf = async (
  { petId = "", quantity = "", shipDate = "", complete }: Values,
  pet: Pet | undefined,
): Promise<NewOrder> => ({
  ...(petId.trim() !== "" && { petId: await idMeant("available pet", "petId", petId, pet) }),
  ...(quantity !== "" && { quantity: integer32("quantity", quantity, 1) }),
  ...(shipDate !== "" && { shipDate: dateTime("shipDate", shipDate) }),
  ...(complete === "true" && { complete: true }),
});
