/** Each flag does what help says of it; without it the same request is answered otherwise. */
import { createServer } from "node:http2";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveWith } from "./fixtures/command.ts";
import { descriptorSet, portOf, type Shop, shop, shopContract } from "./fixtures/shop.ts";

type Command = Awaited<ReturnType<typeof serveWith>>;
type Answer = Awaited<ReturnType<Command["ask"]>>;

let calls: Shop;
let args: string[] = [];
let plain: Command;
const server = createServer((request, response) => connectNodeAdapter({ routes: calls.routes })(request, response));
beforeAll(async () => {
  const registry = shopContract();
  calls = shop(registry);
  args = ["--descriptor-set", descriptorSet(registry), "--target", await portOf(server), "--admin-port", "off"];
});
afterAll(() => void server.close());

const JSON_TYPE = { "content-type": "application/json" };
const put = (body: object) => ({ path: "/items", method: "PUT", headers: JSON_TYPE, body: JSON.stringify(body) });
const item = { path: "/items/a" };
const member = (name: string) => (answer: Answer) => JSON.parse(answer.text)[name];
const status = (answer: Answer) => answer.status;
const header = (name: string) => (answer: Answer) => answer.headers.get(name);
const passed = (name: string) => () => calls.headers.at(-1)?.get(name);

interface Row {
  readonly flags: readonly string[];
  readonly ask: { readonly path: string } & RequestInit;
  readonly see: (answer: Answer) => unknown;
  readonly with: unknown;
  readonly without: unknown;
}

const preflight = {
  path: "/items/a",
  method: "OPTIONS",
  headers: { origin: "https://a.example", "access-control-request-method": "GET" },
};

const rows: readonly Row[] = [
  { flags: ["--codec", "exact"], ask: item, see: member("size"), with: 7, without: "7" },
  {
    flags: ["--errors", "problem"],
    ask: { path: "/items/none" },
    see: header("content-type"),
    with: expect.stringContaining("application/problem+json"),
    without: expect.stringContaining("application/json"),
  },
  { flags: ["--omit-unpopulated"], ask: item, see: member("note"), with: undefined, without: "" },
  { flags: ["--original-names"], ask: item, see: member("item_name"), with: "a", without: undefined },
  { flags: ["--enum-numbers"], ask: item, see: member("kind"), with: 1, without: "KIND_BIG" },
  { flags: ["--ignore-unknown"], ask: { path: "/items/a?x=1" }, see: status, with: 200, without: 400 },
  {
    flags: ["--unbound"],
    ask: { ...put({}), path: "/shop.v1.Shop/Plain", method: "POST" },
    see: status,
    with: 200,
    without: 404,
  },
  {
    flags: ["--grpc-metadata"],
    ask: { ...item, headers: { "grpc-metadata-x-tenant": "t" } },
    see: (answer) => [passed("x-tenant")(), header("grpc-metadata-x-told")(answer)],
    with: ["t", "yes"],
    without: [null, null],
  },
  {
    flags: ["--allow-header", "X-Tenant", "--allow-header", "x-other"],
    ask: { ...item, headers: { "x-tenant": "t", "x-other": "o" } },
    see: () => [passed("x-tenant")(), passed("x-other")()],
    with: ["t", "o"],
    without: [null, null],
  },
  {
    flags: ["--cors", "https://a.example"],
    ask: preflight,
    see: header("access-control-allow-origin"),
    with: "https://a.example",
    without: null,
  },
  {
    flags: ["--cors", "*"],
    ask: preflight,
    see: header("access-control-allow-origin"),
    with: "*",
    without: null,
  },
  {
    flags: ["--title", "Shop"],
    ask: { path: "/openapi.json" },
    see: (answer) => member("info")(answer).title,
    with: "Shop",
    without: "API",
  },
  { flags: ["--max-bytes", "100"], ask: put({ note: "n".repeat(100) }), see: status, with: 413, without: 200 },
  { flags: ["--json-depth", "3"], ask: put({ more: { a: { b: {} } } }), see: status, with: 400, without: 200 },
];

beforeAll(async () => {
  plain = await serveWith(args);
});

test.each(rows)("$flags", async ({ flags, ask: { path, ...init }, see, ...expected }) => {
  const command = await serveWith([...args, ...flags]);
  expect([see(await command.ask(path, init)), see(await plain.ask(path, init))]).toEqual([
    expected.with,
    expected.without,
  ]);
  command.child.kill("SIGKILL");
});

test("--timeout ends a call", async () => {
  const { ask } = await serveWith([...args, "--timeout", "300ms"]);
  const late = await ask("/items/held");
  expect([late.status, JSON.parse(late.text).code]).toEqual([504, 4]);
});

test("--max-bytes refuses a larger answer", async () => {
  const { ask } = await serveWith([...args, "--max-bytes", "4"]);
  expect((await ask("/items/large-enough")).status).toBe(502);
});
