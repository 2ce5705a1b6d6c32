import type { InventoryItem, NewStock } from "@petstore/client";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { countMeant } from "../parts/field-errors.ts";
import { Choice, Filters, IdFilter, idIn } from "../parts/filters.tsx";
import { editing, type FieldSpec, RecordForm, type Values } from "../parts/form.tsx";
import { ListView, useDialog, usePagedList } from "../parts/list-view.tsx";
import { Name, Status, statusOf, statusOptions } from "../parts/words.tsx";
import { petstore } from "../petstore.ts";
import { written } from "../records/changes.ts";
import { petName } from "../records/names.ts";
import { firstPage } from "../records/paged-list.ts";
import { hrefOf } from "../route.ts";

export function Inventory() {
  const { dialog, show, onClose } = useDialog();
  const list = usePagedList<"inventory">((query) => {
    const petId = idIn(query, "pet");
    const status = statusOf(query.get("status"));
    return {
      kind: "inventory",
      matches: (item) =>
        (petId === undefined || item.petId === petId) && (status === undefined || item.status === status),
      key: "petId",
      list: (page, options) => petstore.inventory.list({ ...page, petId, status }, options),
    };
  });
  return (
    <ListView
      dialog={dialog}
      title="Inventory"
      intro="What can still be sold. What open orders hold is not counted."
      list={list}
      columns={[
        {
          label: "Pet",
          isHead: true,
          cell: ({ petId }) => (
            <a href={hrefOf("pets", { id: `${petId}` })}>
              <Name>{petName(petId)}</Name>
            </a>
          ),
        },
        { label: "Pet ID", cell: ({ petId }) => `${petId}`, isNumber: true },
        { label: "Quantity", cell: ({ quantity }) => quantity.toLocaleString("en"), isNumber: true },
        { label: "Status", cell: ({ status }) => <Status status={status} /> },
      ]}
      actions={(item) => (
        <>
          <a class="button" href={hrefOf("orders", { pet: `${item.petId}`, state: "open" })}>
            Open orders<span class="unseen"> for pet {`${item.petId}`}</span>
          </a>
          <button type="button" onClick={() => show(<SetStock {...{ item, onClose }} />)}>
            Set stock<span class="unseen"> of pet {`${item.petId}`}</span>
          </button>
        </>
      )}
      filters={
        <Filters>
          <Choice name="status" label="Status" all="any" options={statusOptions} />
          <IdFilter name="pet" label="Pet" offered="pet" />
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
  );
}

function SetStock({ item: before, onClose }: { readonly item: InventoryItem; readonly onClose: () => void }) {
  const { petId } = before;
  /** What "+10" is added to. */
  const base = useRef(before.quantity);
  const fields: readonly FieldSpec[] = [
    {
      name: "quantity",
      label: "Quantity",
      kind: "count",
      missing: "Say how many there are.",
      hint: (
        <>
          <Held petId={petId} /> Type +10 for a delivery, -2 for a loss. Above 0 a pet that was listed as sold is
          available again.
        </>
      ),
    },
  ];
  async function submit({ quantity = "" }: Values, etag: string): Promise<void> {
    // Without a number the petstore says that there is none.
    const wanted = { quantity: countMeant("quantity", quantity, base.current) } as NewStock;
    const item = await petstore.inventory.replace(petId, wanted, { ifMatch: etag });
    written("inventory", item, `${petName(petId)}: ${item.quantity} in stock.`);
  }
  async function read(): Promise<InventoryItem> {
    const now = await petstore.inventory.get(petId);
    base.current = now.quantity;
    return now;
  }
  const title = `Stock of ${petName(petId)}`;
  const edited = editing(before, valuesOf, read);
  return <RecordForm submitLabel="Set stock" {...{ title, fields, submit, onClose, ...edited }} />;
}

const valuesOf = ({ quantity }: InventoryItem): Values => ({ quantity: `${quantity}` });

/** The most open orders that are added up. */
const MANY = 100;

/** What open orders hold of a pet. */
function Held({ petId }: { readonly petId: number }) {
  const held = useSignal("");
  useEffect(() => {
    const read = async () => {
      const open = await firstPage(petstore.orders.list({ petId, complete: false, limit: MANY }));
      const sum = open.items.reduce((all, { quantity = 0 }) => all + quantity, 0);
      held.value = `${open.nextPageToken === "" ? "" : "more than "}${sum === 0 ? "none" : sum.toLocaleString("en")}`;
    };
    read().catch(() => {}); // without an answer nothing is said of it
  }, [petId]);
  if (held.value === "") return null;
  return <>Open orders hold {held.value}.</>;
}
