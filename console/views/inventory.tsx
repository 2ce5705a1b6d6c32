import type { InventoryItem } from "@petstore/client";
import { useState } from "preact/hooks";
import { notify } from "../notices.ts";
import { integer32 } from "../parts/field-errors.ts";
import { Choice, Filters, IdFilter, idIn } from "../parts/filters.tsx";
import { type FieldSpec, RecordForm, type Theirs, type Values } from "../parts/form.tsx";
import { firstPage, ListView, usePagedList } from "../parts/list-view.tsx";
import { Name } from "../parts/name.tsx";
import { Status, statusOf, statusOptions } from "../parts/status.tsx";
import { petstore } from "../petstore.ts";
import { nameOf } from "../records/names.ts";
import { written } from "../records/written.ts";
import { hrefOf } from "../route.ts";

export function Inventory() {
  const [open, show] = useState<InventoryItem>();
  const list = usePagedList<"inventory">((query) => {
    const petId = idIn(query, "pet");
    const status = statusOf(query.get("status"));
    return {
      kind: "inventory",
      idOf: (item) => item.petId,
      matches: (item) =>
        (petId === undefined || item.petId === petId) && (status === undefined || item.status === status),
      key: "petId",
      read: async (page, options) => {
        const filter = {
          ...(petId !== undefined && { petId: [petId] }),
          ...(status !== undefined && { status: [status] }),
        };
        return firstPage(petstore.inventory.list({ ...page, ...filter }, options));
      },
    };
  });
  return (
    <>
      <ListView
        title="Inventory"
        intro="What can still be sold. What open orders hold is not counted."
        list={list}
        columns={[
          {
            label: "Pet",
            isHead: true,
            cell: ({ petId }) => (
              <a href={hrefOf("pets", { id: `${petId}` })}>
                <Name>{nameOf("pet", petId) ?? `Pet ${petId}`}</Name>
              </a>
            ),
          },
          { label: "Pet ID", cell: ({ petId }) => `${petId}`, isNumber: true },
          { label: "Quantity", cell: ({ quantity }) => quantity.toLocaleString("en"), isNumber: true },
          { label: "Status", cell: ({ status }) => <Status status={status} /> },
        ]}
        actions={(item) => (
          <button type="button" onClick={() => show(item)}>
            Set stock<span class="unseen"> of pet {item.petId.toString()}</span>
          </button>
        )}
        filters={
          <Filters>
            <Choice name="status" label="Status" all="any" options={statusOptions} />
            <IdFilter name="pet" label="Pet" />
          </Filters>
        }
        empty={{
          all: "There is no stock yet. Each pet that is created has its own.",
          filtered: "No stock matches.",
          step: (
            <a class="button" href={hrefOf("pets")}>
              Go to the pets
            </a>
          ),
        }}
      />
      {open && <SetStock item={open} onClose={() => show(undefined)} />}
    </>
  );
}

const fields: readonly FieldSpec[] = [
  {
    name: "quantity",
    label: "Quantity",
    kind: "number",
    missing: "Say how many there are.",
    hint: "Above 0 a pet that was listed as sold is available again.",
  },
];

function SetStock({ item: before, onClose }: { readonly item: InventoryItem; readonly onClose: () => void }) {
  const { petId } = before;
  async function submit({ quantity = "" }: Values, etag: string): Promise<void> {
    const inventory = quantity === "" ? {} : { quantity: integer32("quantity", quantity, 0) };
    const item = await petstore.inventory.update(petId, inventory, { ifMatch: etag });
    written("inventory", item);
    notify(`${nameOf("pet", petId) ?? `Pet ${petId}`}: ${item.quantity} in stock.`);
  }
  async function theirs(): Promise<Theirs | undefined> {
    const now = await petstore.inventory.get(petId);
    return { values: valuesOf(now), etag: now.etag };
  }
  return (
    <RecordForm
      title={`Stock of ${nameOf("pet", petId) ?? `pet ${petId}`}`}
      submitLabel="Set stock"
      initial={valuesOf(before)}
      etag={before.etag}
      {...{ fields, submit, theirs, onClose }}
    />
  );
}

const valuesOf = ({ quantity }: InventoryItem): Values => ({ quantity: `${quantity}` });
