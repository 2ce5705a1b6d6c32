import type { Order } from "@petstore/client";
import { Confirm } from "../parts/dialog.tsx";
import { dateTime, localTime, shownTime } from "../parts/field-errors.ts";
import { Choice, Filters, IdFilter, idIn } from "../parts/filters.tsx";
import { editing, RecordForm, type Values } from "../parts/form.tsx";
import { ListView, useDialog, usePagedList } from "../parts/list-view.tsx";
import { Chip, Name } from "../parts/words.tsx";
import { petstore } from "../petstore.ts";
import { unlessGone, written } from "../records/changes.ts";
import { petName } from "../records/names.ts";
import { hrefOf } from "../route.ts";
import { OrderForm, shipDate } from "./order-form.tsx";

export function Orders() {
  const { dialog, show, onClose } = useDialog();
  const place = () => show(<OrderForm onClose={onClose} />);
  const list = usePagedList<"order">((query) => {
    const petId = idIn(query, "pet");
    const complete = { open: false, complete: true }[query.get("state") ?? ""];
    return {
      kind: "order",
      matches: (order) =>
        (petId === undefined || order.petId === petId) && (complete === undefined || order.complete === complete),
      key: "id",
      list: (page, options) => petstore.orders.list({ ...page, petId, complete }, options),
    };
  });
  return (
    <ListView
      dialog={dialog}
      title="Orders"
      intro="Placing an order takes from the stock, cancelling it gives back."
      list={list}
      create={{ label: "Place an order", onClick: place }}
      columns={[
        { label: "ID", cell: ({ id }) => `${id}`, isNumber: true, isHead: true },
        {
          label: "Pet",
          cell: ({ petId }) =>
            petId === undefined ? (
              <span class="quiet">none</span>
            ) : (
              <a href={hrefOf("pets", { id: `${petId}` })}>
                <Name>{petName(petId)}</Name>
              </a>
            ),
        },
        { label: "Quantity", cell: ({ quantity }) => quantity?.toLocaleString("en") ?? "", isNumber: true },
        {
          label: "Ship date",
          cell: (order) => (
            <button type="button" class="link" onClick={() => show(<SetShipDate {...{ order, onClose }} />)}>
              {order.shipDate ? <Moment time={order.shipDate} /> : "Set it"}
              <span class="unseen"> (the ship date of order {`${order.id}`})</span>
            </button>
          ),
        },
        { label: "State", cell: ({ complete }) => <Chip word={complete ? "complete" : "open"} /> },
      ]}
      actions={(order) =>
        order.complete ? null : (
          <>
            <button type="button" onClick={() => show(<CompleteOrder {...{ order, onClose }} />)}>
              Complete<span class="unseen"> order {`${order.id}`}</span>
            </button>
            <button type="button" onClick={() => show(<CancelOrder {...{ order, onClose }} />)}>
              Cancel<span class="unseen"> order {`${order.id}`}</span>
            </button>
          </>
        )
      }
      filters={
        <Filters>
          <Choice
            name="state"
            label="State"
            all="any"
            options={[
              ["open", "open"],
              ["complete", "complete"],
            ]}
          />
          <IdFilter name="pet" label="Pet" offered="pet" />
        </Filters>
      }
      empty={{
        all: "There are no orders yet.",
        filtered: "No order matches.",
        step: (
          <button type="button" class="primary" onClick={place}>
            Place the first order
          </button>
        ),
      }}
    />
  );
}

const Moment = ({ time }: { readonly time: string }) => <time dateTime={time}>{shownTime(time)}</time>;

interface OrderProps {
  readonly order: Order;
  readonly onClose: () => void;
}

function SetShipDate({ order, onClose }: OrderProps) {
  async function submit(values: Values, etag: string): Promise<void> {
    const { shipDate: text = "" } = values;
    const fields = { shipDate: text === "" ? null : dateTime("shipDate", text) };
    written(
      "order",
      await petstore.orders.update(order.id, fields, { ifMatch: etag }),
      `Order ${order.id} ${text === "" ? "has no ship date any more" : "has its ship date"}.`,
    );
  }
  const title = `Ship date of order ${order.id}`;
  const edited = editing(order, valuesOf, () => petstore.orders.get(order.id));
  return <RecordForm submitLabel="Save" fields={[shipDate]} {...{ title, submit, onClose, ...edited }} />;
}

const valuesOf = ({ shipDate }: Order): Values => ({ shipDate: shipDate ? localTime(shipDate) : "" });

function CompleteOrder({ order: before, onClose }: OrderProps) {
  async function run(): Promise<void> {
    written(
      "order",
      await petstore.orders.update(before.id, { complete: true }, { ifMatch: before.etag }),
      `Order ${before.id} is complete.`,
    );
  }
  return (
    <Confirm isUsual title={`Complete order ${before.id}`} action="Complete" run={run} onClose={onClose}>
      <p>When the customer has everything. A complete order can't be reopened or cancelled.</p>
    </Confirm>
  );
}

function CancelOrder({ order, onClose }: OrderProps) {
  async function run(): Promise<void> {
    await unlessGone(petstore.orders.delete(order.id, { ifMatch: order.etag }), "ORDER_NOT_FOUND");
    written("order", order, `Order ${order.id} is cancelled.`, true);
  }
  return (
    <Confirm title={`Cancel order ${order.id}`} action="Cancel the order" run={run} onClose={onClose}>
      <p>What it holds returns to the stock.</p>
    </Confirm>
  );
}
