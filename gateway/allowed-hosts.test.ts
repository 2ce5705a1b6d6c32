/** DNS rebinding, and what every answer tells browsers. */
import { readdirSync } from "node:fs";
import { createHostCheck } from "@petstore/rpc/http/hosts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { petstoreConsole } from "./console.ts";
import { cors } from "./cors.ts";
import { docs } from "./docs.ts";
import { emptyDocument, recordIn, sendRaw, servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { createReadiness, health } from "./health.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

let calls = 0;
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const implementation = {
    getPet: () => {
      calls++;
      return { pet: { id: 1n, name: "Rex", categoryId: 1n, status: 1, etag: '"1"' } };
    },
  };
  const services = [{ name: "pet", desc: PetService, transport: servedInProcess(PetService, implementation as never) }];
  const common = { basePath: "", clock: Date.now, random: Math.random };
  gateway = await startGateway(PetService, implementation as never, {
    hosts: { check: createHostCheck(["shop.example"]) },
    cors: cors(["*"]),
    plugins: [
      petstoreConsole({ basePath: "" }),
      docs("", async () => emptyDocument),
      health("", createReadiness({ ...common, services: [], isAccepting: () => true })),
      rpcEndpoint({ ...common, services, limits: { ...testLimits, rpcBytes: 1024 } }),
    ],
  });
});
afterAll(() => gateway.app.close());

const script = readdirSync("console/dist/assets").find((name) => name.endsWith(".js"));
const GET_PET = "/petstore.pet.v1.PetService/GetPet";
const requests: readonly [what: string, line: string, more: string, statusWhenAllowed: number][] = [
  ["an operation", "GET /pets/1", "", 200],
  ["a path that there is not", "GET /nowhere", "", 404],
  ["a body that is none", "POST /pets", "content-type: application/json\r\ncontent-length: 1\r\n\r\n{", 400],
  ["an RPC", `POST ${GET_PET}`, 'content-type: application/json\r\ncontent-length: 11\r\n\r\n{"petId":1}', 200],
  ["an RPC by GET", `GET ${GET_PET}?connect=v1&encoding=json&message=%7B%22petId%22%3A1%7D`, "", 200],
  ["an RPC that there is not", "POST /petstore.pet.v1.PetService/No", "content-type: application/json\r\n", 404],
  ["a preflight", "OPTIONS /pets", "origin: http://a.example\r\naccess-control-request-method: PUT\r\n", 204],
  ["OPTIONS", "OPTIONS /pets", "", 204],
  ["the page", "GET /docs", "", 200],
  ["the console", "GET /", "accept: text/html\r\n", 200],
  ["a file of the console", `GET /console/${script}`, "", 200],
  ["the document", "GET /openapi.json", "", 200],
];

describe.each(requests)("%s", (_, line, more, status) => {
  const ask = (host: string, inTarget = "") =>
    sendRaw(
      gateway.port,
      `${line.replace(" ", ` ${inTarget}`)} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n${more.includes("\r\n\r\n") ? more : `${more}\r\n`}`,
      { end: false }, // a caller who ends its side has left, and the page takes a moment when it is first asked for
    );

  test("is refused by another name, before anything is done", async () => {
    calls = 0;
    const answer = await ask("evil.example:8080");
    expect(answer).toMatch(/^HTTP\/1\.1 421 /);
    expect(answer.toLowerCase()).not.toContain("access-control-allow");
    expect(recordIn(answer)).toEqual({
      code: "MISDIRECTED_REQUEST",
      message: expect.stringMatching(/^Host: .* evil\.example\. .*ALLOWED_HOSTS/),
      status: 421,
    });
    expect(calls).toBe(0);
  });

  test("goes by the host in its target, if there is one", async () => {
    expect(await ask("localhost", "http://evil.example:8080")).toMatch(/^HTTP\/1\.1 421 /);
    expect(await ask("evil.example", "http://localhost:8080")).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  test.each(["localhost:8080", "127.0.0.1", "[::1]:1", "shop.example"])("is answered by %s", async (host) => {
    expect(await ask(host)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  test("is answered as what it says it is, without a cookie", async () => {
    const [head = ""] = (await ask("localhost")).toLowerCase().split("\r\n\r\n");
    expect(head).toMatch(/^x-content-type-options: nosniff$/m);
    expect(head).not.toContain("set-cookie");
  });
});

test.each(["/healthz", "/readyz"])("%s answers probes, which ask by whatever address they know", async (path) => {
  const ask = (host: string) =>
    sendRaw(gateway.port, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  for (const host of ["10.244.1.7:8080", "pod.example", "localhost"])
    expect([host, await ask(host)]).toEqual([host, expect.stringMatching(/^HTTP\/1\.1 (200|503) /)]);
  expect(await ask("a b")).toMatch(/^HTTP\/1\.1 400 /);
});

test("what is no HTTP is answered so, too", async () => {
  expect((await sendRaw(gateway.port, "hello\r\n\r\n")).toLowerCase()).toContain("x-content-type-options: nosniff");
});

test("a gateway that was told of no hosts answers to all", async () => {
  const open = await startGateway(PetService, {});
  expect(await sendRaw(open.port, "GET / HTTP/1.1\r\nhost: any\r\nconnection: close\r\n\r\n")).toMatch(/ 404 /);
  await open.app.close();
});
