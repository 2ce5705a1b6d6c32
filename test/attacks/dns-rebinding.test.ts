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
    ? ["/pets", "/docs", "/petstore.pet.v1.PetService/ListPets?connect=v1&encoding=json&message=%7B%7D"]
    : [`/petstore.${name}.v1.${lists[name]}?connect=v1&encoding=json&message=%7B%7D`];

/** By GET, or by POST with an empty message. */
const statusOver = {
  async "HTTP/1.1"(port: number, host: string, target: string, method = "GET") {
    const message = method === "POST" ? "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" : "\r\n";
    const request = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${message}`;
    const answer = await sendRaw(port, request, { end: false });
    return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
  },
  async "HTTP/2"(port: number, host: string, target: string, method = "GET") {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const isPost = method === "POST";
    const head = { ":method": method, ":authority": host, ":path": target };
    const stream = session.request(isPost ? { ...head, "content-type": "application/json" } : head);
    if (isPost) stream.end("{}");
    const [headers] = await once(stream.resume(), "response");
    session.destroy();
    return Number(headers[":status"]);
  },
};

// The gateway speaks HTTP/2 only over TLS.
const protocolsOf = (name: ProcessName) =>
  name === "gateway" ? (["HTTP/1.1"] as const) : (["HTTP/1.1", "HTTP/2"] as const);

test.each(processNames)("%s answers to the names of loopback alone", async (name) => {
  const port = Number(new URL(petstore.url(name)).port);
  for (const protocol of protocolsOf(name)) {
    for (const target of targets(name)) {
      const status = (host: string) => statusOver[protocol](port, host, target);
      expect(await status(`evil.example:${port}`)).toBe(421);
      expect(await status("localhost.evil.example")).toBe(421);
      expect([target, await status(`localhost:${port}`)]).toEqual([target, 200]);
      expect([target, await status("127.0.0.1")]).toEqual([target, 200]);
    }
  }
});

test.each(processNames)("%s answers probes, which ask by whatever address they know", async (name) => {
  const port = Number(new URL(petstore.url(name)).port);
  const [method, ...probes] =
    name === "gateway" ? ["GET", "/healthz", "/readyz"] : ["POST", "/grpc.health.v1.Health/Check"];
  for (const protocol of protocolsOf(name))
    for (const probe of probes)
      for (const host of [`10.244.1.7:${port}`, "pod.example"])
        expect([probe, host, await statusOver[protocol](port, host, probe, method)]).toEqual([probe, host, 200]);
});

test.each(processNames)("%s goes by the host in the target, whatever Host says", async (name) => {
  const port = Number(new URL(petstore.url(name)).port);
  const status = (inTarget: string, host: string) =>
    statusOver["HTTP/1.1"](port, host, `http://${inTarget}${targets(name)[0]}`);
  expect(await status("evil.example", `localhost:${port}`)).toBe(421);
  expect(await status(`localhost:${port}`, "evil.example")).toBe(200);
});
