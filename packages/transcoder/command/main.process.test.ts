/** The command as a process, before a gRPC service with reflection. */
import { once } from "node:events";
import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import type { FileRegistry } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { reflectionOf, serveReflection } from "../fixtures/reflection.ts";
import { run, serve, startBy } from "./fixtures/command.ts";
import { descriptorSet } from "./fixtures/shop.ts";

const contract = (path: string, more = "") =>
  compileProtos({
    "shop.proto": `syntax = "proto3";
package shop.v1;
import "google/api/annotations.proto";
service Shop {
  rpc GetItem(Item) returns (Item) { option (google.api.http) = {get: "${path}/{name}"}; }
  rpc Plain(Item) returns (Item);
  ${more}
}
message Item { string name = 1; int32 size = 2; }`,
  });
const JSON_TYPE = { "content-type": "application/json" };
const broken = 'rpc Bad(Item) returns (Item) { option (google.api.http) = {get: "/bad/{none}"}; }';

let items: FileRegistry;
let things: FileRegistry;
let faulty: FileRegistry;
let target: Http2Server;
let url = "";
let reflected: FileRegistry;
const asked = Promise.withResolvers<void>();
const held = Promise.withResolvers<void>();

beforeAll(async () => {
  items = contract("/items");
  things = contract("/things");
  faulty = contract("/items", broken);
  reflected = items;
  const routes = (router: ConnectRouter) => {
    const getItem = async ({ name }: { name: string }) => {
      if (name === "held") {
        asked.resolve();
        await held.promise;
      }
      return { name, size: 7 };
    };
    router.service(serviceOf(items, "shop.v1.Shop"), { getItem } as never);
    serveReflection(router, (question) => reflectionOf(() => reflected)(question), ["v1alpha"]);
  };
  target = createServer(connectNodeAdapter({ routes })).listen(0, "127.0.0.1");
  await once(target, "listening");
  url = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
});
afterAll(() => target.close());

test("a URL with reflection is enough, and SIGTERM drains", async () => {
  const { ask, stop } = await serve("--reflect", url, "--title", "<Shop>", "--cors", "https://a.example");
  const item = await ask("/items/a%2Fb", { headers: { origin: "https://a.example" } });
  expect([item.status, JSON.parse(item.text)]).toEqual([200, { name: "a/b", size: 7 }]);
  expect(item.headers.get("access-control-allow-origin")).toBe("https://a.example");
  expect(JSON.parse((await ask("/none")).text)).toMatchObject({ code: 5 });
  expect((await ask("/shop.v1.Shop/Plain", { method: "POST" })).status).toBe(404);
  const document = JSON.parse((await ask("/openapi.json")).text);
  expect([document.info.title, Object.keys(document.paths)]).toEqual(["<Shop>", ["/items/{name}"]]);
  expect((await ask("/docs")).text).toContain("<h1>&#60;Shop&#62;</h1>");
  expect(JSON.parse((await ask("/healthz")).text)).toEqual({ status: "ok" });

  const late = ask("/items/held");
  await asked.promise;
  const ended = stop();
  const isOpen = () =>
    ask("/healthz").then(
      () => true,
      () => false,
    );
  await expect.poll(isOpen).toBe(false);
  held.resolve();
  expect((await late).status).toBe(200);
  expect(await ended).toMatchObject({ code: 0, text: expect.stringMatching(/Stopped\n$/) });
});

test("a descriptor set with a target, and RPCs without a rule", async () => {
  const { ask } = await serve("--descriptor-set", descriptorSet(items), "--target", `shop.v1.Shop=${url}`, "--unbound");
  expect((await ask("/items/a")).status).toBe(200);
  expect((await ask("/shop.v1.Shop/Plain", { method: "POST", headers: JSON_TYPE, body: "{}" })).status).toBe(501);
});

test("a contract that changes is served; a broken one is not, and the one before goes on", async () => {
  reflected = items;
  const { ask, says } = await serve("--reflect", url, "--watch", "--strict");
  expect((await ask("/items/a")).status).toBe(200);
  reflected = faulty;
  await says(/the contract of before goes on being served: Not all can be served/);
  expect((await ask("/items/a")).status).toBe(200);
  reflected = things;
  await says(/The contract has changed/);
  expect([(await ask("/things/a")).status, (await ask("/items/a")).status]).toEqual([200, 404]);
  reflected = items;
});

test("--check says what is served and what is not", async () => {
  const set = descriptorSet(faulty);
  const asText = await run("--descriptor-set", set, "--target", url, "--check");
  expect(asText.code).toBe(0);
  expect(asText.text).toMatch(/GET \/items\/\{name\} {2}shop.v1.Shop\/GetItem\n/);
  expect(asText.text).toMatch(/Not served: 1\n.*Bad/);
  const asJson = await run("--descriptor-set", set, "--target", url, "--check", "--json", "--strict");
  expect([asJson.code, JSON.parse(asJson.text)]).toEqual([
    1,
    {
      served: [{ verb: "GET", path: "/items/{name}", rpc: "shop.v1.Shop/GetItem" }],
      refused: [expect.stringContaining("Bad")],
    },
  ]);
});

const away = "http://127.0.0.1:1";
test.each([
  ["no contract", [], 2, /--reflect URL.*\n.*--help/],
  ["an unknown flag", ["--reflekt", away], 2, /--reflekt/],
  ["two contracts", ["--reflect", away, "--descriptor-set", "a"], 2, /give one of them/],
  ["a set without a target", ["--descriptor-set", "a"], 2, /add --target URL/],
  ["no URL", ["--reflect", "localhost:50051"], 2, /such as http:\/\/localhost:50051/],
  ["two flags that are wrong", ["--reflect", away, "--max-bytes", "0", "--errors", "a"], 2, /--max-bytes is a number/],
  ["a time without its unit", ["--reflect", away, "--timeout", "30"], 2, /such as 500ms/],
  ["a header without a value", ["--reflect", away, "--reflect-header", "a"], 2, /authorization: Bearer/],
  ["a certificate without its key", ["--reflect", away, "--tls-cert", "a"], 2, /give both/],
  ["nobody to ask", ["--reflect", away], 1, /can't be asked.*ECONNREFUSED/],
  ["no set", ["--descriptor-set", "/none", "--target", away], 1, /\/none can't be read/],
])("%s: it ends and says what to do", async (_, args, code, message) => {
  expect(await run(...args)).toEqual({ code, text: expect.stringMatching(message) });
});

test("a target that is away, or a contract of which nothing can be served, ends it", async () => {
  const set = descriptorSet(items);
  expect(await run("--descriptor-set", set, "--target", away)).toEqual({
    code: 1,
    text: expect.stringContaining(`The target ${away} is away`),
  });
  const elsewhere = await run("--descriptor-set", set, "--target", `shop.v1.Other=${url}`);
  expect(elsewhere).toEqual({ code: 1, text: expect.stringContaining("add --target shop.v1.Shop=URL") });
  const plain = compileProtos({
    "a.proto": 'syntax = "proto3"; package a; service S { rpc Get(M) returns (M); } message M {}',
  });
  const nothing = await run("--descriptor-set", descriptorSet(plain), "--target", url);
  expect(nothing).toEqual({ code: 1, text: expect.stringContaining("no RPC of a.S has a google.api.http rule") });
});

test("it says its version and its flags", async () => {
  expect(await run("--version")).toEqual({ code: 0, text: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  expect((await run("--help")).text).toContain("npx connect-transcoder --reflect http");
});

test("on a Node that is too old it says which one to install", async () => {
  const old = 'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "20.20.2" })';
  const { ended } = startBy(["--import", old], "--version");
  expect(await ended).toEqual({
    code: 1,
    text: expect.stringMatching(/this is Node 20.20.2, .*npm install node@22\n$/),
  });
});
