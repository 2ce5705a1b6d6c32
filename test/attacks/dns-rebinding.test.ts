/** A page whose own name has come to point at this machine: its browser calls every port as if it were the page's server. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sendRaw } from "../../gateway/fixtures/gateway.ts";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore?.stop());

const lists = {
  pet: "PetService/ListPets",
  category: "CategoryService/ListCategories",
  order: "OrderService/ListOrders",
  inventory: "InventoryService/ListInventory",
};

/** What every process serves to Connect by GET, and the gateway to browsers. */
const targets = (name: ProcessName) =>
  name === "gateway"
    ? ["/pets", "/docs", "/readyz", "/petstore.pet.v1.PetService/ListPets?connect=v1&encoding=json&message=%7B%7D"]
    : [
        `/petstore.${name}.v1.${lists[name]}?connect=v1&encoding=json&message=%7B%7D`,
        "/grpc.health.v1.Health/Check?connect=v1&encoding=json&message=%7B%7D",
      ];

const statusOver = {
  async "HTTP/1.1"(port: number, host: string, target: string) {
    const head = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    const answer = await sendRaw(port, head, { end: false });
    return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
  },
  async "HTTP/2"(port: number, host: string, target: string) {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const [headers] = await once(session.request({ ":authority": host, ":path": target }).resume(), "response");
    session.destroy();
    return Number(headers[":status"]);
  },
};

test.each(processNames)("%s answers to the names of loopback alone", async (name) => {
  const port = Number(new URL(petstore.url(name)).port);
  // The gateway speaks HTTP/2 only over TLS.
  const protocols = name === "gateway" ? (["HTTP/1.1"] as const) : (["HTTP/1.1", "HTTP/2"] as const);
  for (const protocol of protocols) {
    for (const target of targets(name)) {
      const status = (host: string) => statusOver[protocol](port, host, target);
      expect(await status(`evil.example:${port}`)).toBe(421);
      expect(await status("localhost.evil.example")).toBe(421);
      // Health is asked for by POST alone, and says so.
      const answered = target.startsWith("/grpc.health") ? 405 : 200;
      expect([target, await status(`localhost:${port}`)]).toEqual([target, answered]);
      expect([target, await status("127.0.0.1")]).toEqual([target, answered]);
    }
  }
});
