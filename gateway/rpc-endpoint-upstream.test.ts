/** The RPC endpoint before servers that do not behave. */
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, test, vi } from "vitest";
import { rpcError } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Seen, sendRaw, servedAt, startGateway } from "./fixtures/gateway.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const GET_PET = "/petstore.pet.v1.PetService/GetPet";
const CREATE_PET = "/petstore.pet.v1.PetService/CreatePet";

type Call = (path: string, init?: RequestInit) => Promise<Seen>;
const post = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
const grpcWeb = {
  ...post,
  headers: { "content-type": "application/grpc-web+proto" },
  body: new Uint8Array([0, 0, 0, 0, 0]),
};

async function startService(implementation: Partial<ServiceImpl<typeof PetService>>) {
  const sessions = new Set<ServerHttp2Session>();
  const server: Http2Server = createServer(
    connectNodeAdapter({ routes: (router) => router.service(PetService, implementation) }),
  );
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const hangUp = () => {
    for (const session of sessions) session.destroy();
  };
  const close = async () => {
    hangUp();
    await new Promise((done) => server.close(done));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, hangUp, close };
}

/** Runs `check` against an endpoint before these services. */
async function before(
  services: readonly { readonly url: string; close(): Promise<void> }[],
  check: (call: Call, port: number) => Promise<void>,
  { requestMs = 10_000, clock = Date.now } = {},
) {
  const transport = servedAt("a-secret-of-the-petstore", ...services.map(({ url }) => url));
  const limits = { rpcBytes: 1024, requestMs };
  const endpoint = rpcEndpoint({ basePath: "", services: [{ desc: PetService, transport }], limits, clock });
  const gateway = await startGateway(PetService, {}, { plugins: [endpoint], clock });
  try {
    await check(gateway.call, gateway.port);
  } finally {
    await gateway.app.close();
    transport.close();
    for (const service of services) await service.close();
  }
}

test("what a service answers is passed on and not asked for again", async () => {
  const getPet = vi.fn(() => {
    throw rpcError("OVERLOADED", "Come back later.");
  });
  await before([await startService({ getPet })], async (call) => {
    const { status, text, headers } = await call(GET_PET, post);
    expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
    expect(JSON.parse(text)).toMatchObject({
      code: "unavailable",
      message: "Come back later.",
      details: [{ type: "google.rpc.ErrorInfo", debug: { reason: "OVERLOADED" } }],
    });
    expect(getPet).toHaveBeenCalledTimes(1);
  });
});

test("headers and trailers of a service come back, and those of its protocol don't", async () => {
  const service = await startService({
    getPet: (_, { responseHeader, responseTrailer }) => {
      responseHeader.set("idempotent-replayed", "true");
      responseTrailer.set("x-after", "all");
      return {};
    },
  });
  await before([service], async (call) => {
    const { headers } = await call(GET_PET, post);
    expect([headers.get("idempotent-replayed"), headers.get("trailer-x-after")]).toEqual(["true", "all"]);
    expect([headers.get("content-type"), headers.has("grpc-status")]).toEqual(["application/json", false]);
    const seen = await call(GET_PET, grpcWeb);
    expect(seen.headers.get("idempotent-replayed")).toBe("true");
    expect(seen.text).toContain("x-after: all");
  });
});

test("a service that is stuck is told in the protocol's own form", async () => {
  const service = await startService({ getPet: () => new Promise(() => {}) });
  await before(
    [service],
    async (call) => {
      const { status, text } = await call(GET_PET, post);
      expect([status, JSON.parse(text).code]).toEqual([504, "deadline_exceeded"]);
      expect(text).toContain("DEADLINE_EXCEEDED");
      expect((await call(GET_PET, grpcWeb)).text).toContain("grpc-status: 4");
    },
    { requestMs: 100, clock: () => 0 }, // on this clock the call begins in time
  );
});

test.each([
  ["connect-timeout-ms", "3600000", post],
  ["connect-timeout-ms", "9999999999", post],
  ["grpc-timeout", "99999999H", grpcWeb],
])("%s: %s is lowered to the longest time for a request", async (name, value, init) => {
  const given: (number | undefined)[] = [];
  const service = await startService({
    getPet: (_, context) => {
      given.push(context.timeoutMs());
      return {};
    },
  });
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on("warning", note);
  await before([service], async (call) => {
    expect((await call(GET_PET, { ...init, headers: { ...init.headers, [name]: value } })).status).toBe(200);
  }).finally(() => process.off("warning", note));
  expect(given[0]).toBeGreaterThan(0);
  expect(given[0]).toBeLessThanOrEqual(10_000);
  expect(warnings).toEqual([]);
});

test("a caller's own, shorter time is passed on", async () => {
  const given: (number | undefined)[] = [];
  const service = await startService({
    getPet: (_, context) => {
      given.push(context.timeoutMs());
      return {};
    },
  });
  await before([service], async (call) => {
    await call(GET_PET, { ...post, headers: { ...post.headers, "connect-timeout-ms": "5000" } });
    await call(GET_PET, { ...grpcWeb, headers: { ...grpcWeb.headers, "grpc-timeout": "5S" } });
  });
  for (const ms of given) expect(ms).toBeLessThanOrEqual(5000);
  expect(given).toHaveLength(2);
});

test("a service that hangs up is told in the protocol's own form, and only a read is asked for again", async () => {
  const calls = { getPet: 0, createPet: 0 };
  const hanging = (name: keyof typeof calls) => async () => {
    calls[name]++;
    service.hangUp();
    return {};
  };
  const service = await startService({ getPet: hanging("getPet"), createPet: hanging("createPet") });
  await before([service], async (call) => {
    const { status, text } = await call(CREATE_PET, post);
    expect([status, JSON.parse(text).code, calls.createPet]).toEqual([503, "unavailable", 1]);
    expect((await call(GET_PET, post)).status).toBe(503);
    expect(calls.getPet).toBe(3);
    const web = await call(CREATE_PET, grpcWeb);
    expect([web.status, web.text.includes("grpc-status: 14")]).toEqual([200, true]);
  });
});

test("replicas have their turns, and one that is gone is passed over", async () => {
  const named = (name: string) => startService({ getPet: () => ({ pet: { name } }) });
  const [a, b] = [await named("a"), await named("b")];
  await before([b], async () => {
    await before([a, b], async (call) => {
      const answers = async (count: number) => {
        const all: string[] = [];
        for (let i = 0; i < count; i++) {
          const { status, text } = await call(GET_PET, post);
          all.push(status === 200 ? JSON.parse(text).pet.name : String(status));
        }
        return all.join(" ");
      };
      expect(await answers(4)).toBe("a b a b");
      await a.close();
      expect(await answers(4)).toBe("b b b b");
    });
  });
});

test("a GET that claims to have a body is answered without looking at it", async () => {
  await before([await startService({ getPet: () => ({ pet: { name: "Rex" } }) })], async (_, port) => {
    const target = `${GET_PET}?encoding=json&message=%7B%7D`;
    const head = `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n`;
    const answer = await sendRaw(port, `${head}hi`, { end: false });
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain('"Rex"');
  });
});
