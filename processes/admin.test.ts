import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { openAdmin, Unusable } from "./admin.ts";

const lines: string[] = [];
const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
const audited = () => lines.map((line) => JSON.parse(line)).filter(({ admin }) => admin);
let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
  lines.length = 0;
});

const changes: string[] = [];
async function open(host = "127.0.0.1", allowedHosts: readonly string[] = ["shop.example"]) {
  const admin = await openAdmin({ admin: { host, port: 0 }, allowedHosts }, log, stack);
  changes.length = 0;
  admin.routes.set("PUT /thing", (body) => {
    if (body === "wrong") throw new Unusable("It must not be wrong.");
    if (body === "bug") throw new TypeError("a bug");
    changes.push(body);
    return { status: 204 };
  });
  admin.routes.set("GET /inside", (_, query) => ({ status: 200, body: { seconds: query.get("seconds") } }));
  return admin;
}

async function ask(
  url: string | undefined,
  path: string,
  options: { method?: string; headers?: object; body?: string } = {},
) {
  const { body, ...rest } = options;
  const sent = request(`${url}${path}`, { agent: false, ...rest } as never).end(body);
  const [answer] = await once(sent, "response");
  const said = await text(answer);
  return { status: answer.statusCode, body: said && JSON.parse(said), headers: answer.headers };
}
const put = (url: string | undefined, body: string, headers = {}) =>
  ask(url, "/thing", { method: "PUT", body, headers });

test("it says whether the process lives and is ready, and what there is", async () => {
  const { url, routes } = await open();
  for (const probe of ["/healthz", "/livez"])
    expect(await ask(url, probe)).toMatchObject({ status: 200, body: { status: "ok" } });
  expect(await ask(url, "/startupz")).toMatchObject({ status: 503, body: { status: "starting" } });
  expect(await ask(url, "/readyz?now")).toMatchObject({ status: 503, headers: { "cache-control": "no-store" } });
  routes.set("GET /readyz", async () => ({ status: 200, body: { status: "ready" } }));
  expect(await ask(url, "/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  expect(await ask(url, "/readyz", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  const message = "Here are GET /healthz, GET /livez, GET /startupz, GET /readyz, PUT /thing, GET /inside.";
  expect(await ask(url, "/thing")).toMatchObject({ status: 404, body: { message } });
  expect(audited()).toEqual([]);
});

test("there is none if none is wanted", async () => {
  expect((await openAdmin({ admin: undefined, allowedHosts: [] }, log, stack)).url).toBeUndefined();
});

test("a text is sent as it is, and depends on what the caller accepts", async () => {
  const { url, routes } = await open();
  routes.set("GET /text", (_body, query, accept) => ({ status: 200, text: `"${query} ${accept}"`, type: "text/x" }));
  expect(await ask(url, "/text?a=1", { headers: { accept: "text/*" } })).toMatchObject({
    status: 200,
    body: "a=1 text/*",
    headers: { "content-type": "text/x" },
  });
});

test("a change leaves a line in the log", async () => {
  const { url } = await open();
  expect(await put(url, "new")).toMatchObject({ status: 204, body: "" });
  expect(changes).toEqual(["new"]);
  expect(audited()).toMatchObject([{ admin: "PUT /thing", from: "127.0.0.1", body: "new", status: 204 }]);
});

test("a look inside has its query, and leaves no line in the log", async () => {
  const { url } = await open();
  expect(await ask(url, "/inside?seconds=3")).toMatchObject({ status: 200, body: { seconds: "3" } });
  expect(audited()).toEqual([]);
});

test.each([
  ["that comes from a web page", { origin: "http://127.0.0.1:8080" }, "No web page may ask for this"],
  ["with an Origin that says nothing", { origin: "null" }, "No web page may ask for this"],
  ["that a web page loads as an image", { "sec-fetch-site": "cross-site" }, "No web page may ask for this"],
  ["by a name that a web page could have", { host: "evil.example" }, "Host: this server does not answer to"],
])("a look inside and a change %s are refused, and nothing is changed", async (_, headers, why) => {
  const { url } = await open();
  const refused = { status: 403, body: { message: expect.stringContaining(why) } };
  expect(await put(url, "new", headers)).toMatchObject(refused);
  expect(await ask(url, "/inside", { headers })).toMatchObject(refused);
  expect(await ask(url, "/healthz", { headers })).toMatchObject({ status: 200 });
  expect(changes).toEqual([]);
  expect(audited()).toMatchObject([{ admin: "PUT /thing", status: 403 }]);
});

test("a person may open a look inside in the browser", async () => {
  const headers = { "sec-fetch-site": "none" };
  expect(await ask((await open()).url, "/inside", { headers })).toMatchObject({ status: 200 });
});

test("the names of ALLOWED_HOSTS are answered", async () => {
  expect(await put((await open()).url, "new", { host: "shop.example:8180" })).toMatchObject({ status: 204 });
});

const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === "IPv4" && !one.internal)?.address;
test.skipIf(!outside)("other machines may ask how it is, look at nothing inside, and change nothing", async () => {
  const { url } = await open("0.0.0.0", undefined);
  const there = `http://${outside}:${new URL(`${url}`).port}`;
  expect(await ask(there, "/healthz")).toMatchObject({ status: 200 });
  expect(await put(there, "new", { host: "localhost" })).toMatchObject({ status: 403 });
  expect(await ask(there, "/inside", { headers: { host: "localhost" } })).toMatchObject({
    status: 403,
    body: { message: expect.stringContaining("ADMIN_HOST is 127.0.0.1 or 0.0.0.0") },
  });
  expect(changes).toEqual([]);
  expect(await put(url, "new")).toMatchObject({ status: 204 });
});

test("what can't be used is refused with the reason, a failure without", async () => {
  const { url } = await open();
  expect(await put(url, "wrong")).toMatchObject({ status: 400, body: { message: "It must not be wrong." } });
  expect(await put(url, "bug")).toMatchObject({ status: 500, body: { message: "That failed. The log says why." } });
  expect(lines.join()).toContain("a bug");
  expect(await put(url, "x".repeat(65_537))).toMatchObject({
    status: 400,
    body: { message: "The body may have 65536 bytes at most." },
  });
});

test("changes are made one after the other", async () => {
  const { url, routes } = await open();
  let running = 0;
  routes.set("POST /slow", async () => {
    expect(++running).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running--;
    return { status: 204 };
  });
  const all = await Promise.all(Array.from({ length: 5 }, () => ask(url, "/slow", { method: "POST" })));
  expect(all.map(({ status }) => status)).toEqual([204, 204, 204, 204, 204]);
});

test("it takes a hundred connections, and no more", async () => {
  const { url } = await open();
  const port = Number(new URL(`${url}`).port);
  const sockets = Array.from({ length: 101 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  await Promise.race(sockets.map((socket) => once(socket, "close")));
  for (const socket of sockets) socket.destroy();
});

test("its port is told, and what to do if that is taken", async () => {
  const { url } = await open();
  const port = Number(new URL(`${url}`).port);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ host: "127.0.0.1", port, msg: "the admin port is open" });
  await expect(openAdmin({ admin: { host: "127.0.0.1", port }, allowedHosts: [] }, log, stack)).rejects.toThrow(
    /port \d+ is taken.*ADMIN_PORT/,
  );
});
