/** Performs an operation as a client does, and reads its answer. */
import { Code, ConnectError } from "@connectrpc/connect";
import { reasonOf } from "#errors";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { toPetStatus } from "../../services/records/record.ts";
import { isRead, type Kind, type Operation } from "./operations.ts";
import { type Endpoint, present, read, shownCategory, shownItem, shownOrder, shownPet } from "./reading.ts";

/** A record as an answer shows it, in the same form for all kinds. */
export interface Shown {
  readonly kind: Kind;
  readonly id: number;
  readonly version: number;
  readonly view: Readonly<Record<string, string | number | boolean | undefined>>;
}

/** The outcome of an operation, as its caller sees it. `found` has the ids of all records that a read has shown. */
export type Outcome =
  | { readonly is: "done"; readonly shown?: Shown | undefined; readonly found?: readonly number[] }
  | { readonly is: "refused"; readonly reason: string }
  | { readonly is: "unknown" };

export const notFound = (kind: Kind) => `${kind.toUpperCase()}_NOT_FOUND`;

export const nameOf = (mark: number) => `mark ${mark}`;

async function send(endpoint: Endpoint, operation: Operation): Promise<Shown | undefined> {
  const categories = () => endpoint.client(CategoryService);
  const pets = () => endpoint.client(PetService);
  const orders = () => endpoint.client(OrderService);
  const inventory = () => endpoint.client(InventoryService);
  const { mark } = operation;
  const name = nameOf(mark);
  const shipDate = { seconds: BigInt(mark), nanos: 0 };
  const key = operation.key === undefined ? {} : { requestId: operation.key };
  const etag = operation.match === undefined ? {} : { etag: `"${operation.match}"` };
  const id = "id" in operation ? BigInt(operation.id) : 0n;
  switch (operation.do) {
    case "create category":
      return shownCategory(present((await categories().createCategory({ category: { name }, ...key })).category));
    case "rename category":
      return shownCategory(
        present((await categories().updateCategory({ categoryId: id, category: { name }, ...etag })).category),
      );
    case "delete category":
      await categories().deleteCategory({ categoryId: id, ...etag });
      return undefined;
    case "create pet":
    case "change pet": {
      const { category, status } = operation;
      const pet = {
        name,
        ...(category !== undefined && { categoryId: BigInt(category) }),
        ...(status && { status: toPetStatus(status) }),
      };
      if (operation.do === "create pet") return shownPet(present((await pets().createPet({ pet, ...key })).pet));
      const paths = ["name", ...(category === undefined ? [] : ["category_id"]), ...(status ? ["status"] : [])];
      return shownPet(present((await pets().updatePet({ petId: id, pet, updateMask: { paths }, ...etag })).pet));
    }
    case "delete pet":
      await pets().deletePet({ petId: id, ...etag });
      return undefined;
    case "place order": {
      const { quantity, complete, pet } = operation;
      const order = {
        quantity,
        shipDate,
        ...(complete !== undefined && { complete }),
        ...(pet !== undefined && { petId: BigInt(pet) }),
      };
      return shownOrder(present((await orders().createOrder({ order, ...key })).order));
    }
    case "date order":
    case "complete order": {
      const updateMask = { paths: [operation.do === "date order" ? "ship_date" : "complete"] };
      const order = { shipDate, complete: true };
      return shownOrder(present((await orders().updateOrder({ orderId: id, order, updateMask, ...etag })).order));
    }
    case "cancel order":
      await orders().deleteOrder({ orderId: id, ...etag });
      return undefined;
    case "stock": {
      const update = { petId: id, inventory: { quantity: operation.quantity }, ...etag };
      return shownItem(present((await inventory().updateInventory(update)).item));
    }
    default:
      return undefined;
  }
}

/**
 * Sends an operation once. UNAVAILABLE and DEADLINE_EXCEEDED mean that its outcome is unknown; after any other error it had no
 * effect.
 */
export async function perform(endpoint: Endpoint, operation: Operation): Promise<Outcome> {
  try {
    return isRead(operation) ? await read(endpoint, operation) : { is: "done", shown: await send(endpoint, operation) };
  } catch (thrown) {
    if (!(thrown instanceof ConnectError)) throw thrown;
    if (thrown.code === Code.Unavailable || thrown.code === Code.DeadlineExceeded) return { is: "unknown" };
    return { is: "refused", reason: reasonOf(thrown)?.reason ?? `no reason: ${thrown.message}` };
  }
}
