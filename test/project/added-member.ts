/** Runs in a copy of the petstore whose records have one more member, `colour`. Prints what happens to the member as JSON. */
import { type DescService, fromJson, type JsonObject, type Message, toJson } from "@bufbuild/protobuf";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { createCluster } from "../simulation/cluster.ts";

const cluster = await createCluster();

/** Calls an RPC. Returns the record of the answer, or rejects with the error. */
async function call(service: DescService, rpc: string, request: JsonObject): Promise<JsonObject> {
  const method = service.methods.find(({ name }) => name === rpc);
  if (!method) throw new Error(`no RPC ${rpc}`);
  const client = cluster.client(service) as unknown as Record<string, (message: Message) => Promise<Message>>;
  const answer = client[method.localName]?.(fromJson(method.input, request)) as Promise<Message>;
  const message = toJson(method.output, await cluster.until(answer)) as JsonObject;
  return Object.values(message)[0] as JsonObject;
}

const seen = ({ colour, etag }: JsonObject) => [colour ?? null, etag];

/** What answers show while only the member is changed. `name` is the field of the record's id. */
async function change(service: DescService, record: string, id: JsonObject, of = record) {
  const get = () => call(service, `Get${of}`, id);
  const update = (said: JsonObject) =>
    call(service, `Update${of}`, { ...id, [record.toLowerCase()]: said, updateMask: "colour" });
  return {
    created: seen(await get()),
    changed: seen(await update({ colour: "blue" })),
    read: seen(await get()),
    repeated: seen(await update({ colour: "blue" })),
    removed: seen(await update({})),
    gone: seen(await get()),
  };
}

/** Creates a record with an idempotency key, then again with the same body, and with another colour. */
async function create(service: DescService, record: string, said: JsonObject): Promise<[id: string, again: unknown[]]> {
  const under = (colour: string) =>
    call(service, `Create${record}`, { [record.toLowerCase()]: { ...said, colour }, requestId: "key" });
  const { id } = await under("red");
  const again = await under("red");
  const other = await under("green").catch(({ rawMessage }) => rawMessage);
  return [String(id), [again.id === id, again.colour ?? null, other]];
}

const [categoryId, ofCategory] = await create(CategoryService, "Category", { name: "dogs" });
const [petId, ofPet] = await create(PetService, "Pet", { name: "Rex", categoryId });
const [orderId, ofOrder] = await create(OrderService, "Order", { quantity: 1 });
const next = await call(CategoryService, "CreateCategory", { category: { name: "cats" } });

const changes = {
  category: await change(CategoryService, "Category", { categoryId }),
  pet: await change(PetService, "Pet", { petId }),
  order: await change(OrderService, "Order", { orderId }),
  inventory: await change(InventoryService, "Inventory", { petId }),
};
const movePet = (said: JsonObject) =>
  call(PetService, "UpdatePet", { petId, pet: said, updateMask: "colour,categoryId" });
const moved = [
  seen(await movePet({ categoryId: next.id as string, colour: "grey" })),
  seen(await movePet({ categoryId })),
  seen(await call(PetService, "GetPet", { petId })),
];
process.stdout.write(JSON.stringify({ changes, moved, keys: { ofCategory, ofPet, ofOrder } }));
