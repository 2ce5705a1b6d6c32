// In a copy of this folder, outside of the repository, with Node 22.18 or newer: npm install
// npx openapi-typescript http://127.0.0.1:8080/openapi.json -o petstore.ts
// Then: node order.ts
import createClient from "openapi-fetch";
import type { paths } from "./petstore.ts";

const petstore = createClient<paths>({ baseUrl: process.env.PETSTORE_URL ?? "http://127.0.0.1:8080" });

/** The data of a response. Throws if the petstore answered with an error. */
function answered<T>({ data, error }: { data?: T; error?: { code: string; message: string } }): T {
  if (data === undefined) throw new Error(`${error?.code}: ${error?.message}`);
  return data;
}

const category = answered(await petstore.POST("/categories", { body: { name: "dogs" } }));
const pet = answered(await petstore.POST("/pets", { body: { name: "Rex", categoryId: category.id } }));
await show();

const order = answered(await petstore.POST("/store/orders", { body: { petId: pet.id } }));
await show();

const path = { orderId: order.id ?? 0 };
answered(await petstore.PATCH("/store/orders/{orderId}", { params: { path }, body: { complete: true } }));
await show();

async function show() {
  const path = { petId: pet.id };
  const item = answered(await petstore.GET("/store/inventory/{petId}", { params: { path } }));
  console.log(`${pet.name} is ${item.status}`);
}
