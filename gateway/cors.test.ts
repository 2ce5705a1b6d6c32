import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rpcError } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { petstoreConsole } from "./console.ts";
import { cors } from "./cors.ts";
import { startGateway } from "./fixtures/gateway.ts";

const implementation = {
  getPet({ petId }: { petId: bigint }) {
    if (petId === 1n) return { pet: { id: petId, name: "Rex", categoryId: 1n, status: 1, etag: '"1"' } };
    throw rpcError("PET_NOT_FOUND", "There is no pet 404.");
  },
};

describe("pages of other origins", () => {
  const origin = "https://shop.example";
  const preflight = {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "PUT", "access-control-request-headers": "if-match" },
  };
  let open: Awaited<ReturnType<typeof startGateway>>;
  let shut: typeof open;
  beforeAll(async () => {
    open = await startGateway(PetService, implementation as never, {
      cors: cors([origin]),
      plugins: [petstoreConsole({ basePath: "" })],
    });
    shut = await startGateway(PetService, implementation as never, { cors: cors([]) });
  });
  afterAll(() => Promise.all([open.app.close(), shut.app.close()]));

  test("may call, from origins that are configured, and see the headers", async () => {
    const asked = await open.call("/pets/1", preflight);
    expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([204, origin]);
    expect(asked.headers.get("access-control-allow-methods")).toContain("PUT");
    const allowed = asked.headers.get("access-control-allow-headers")?.toLowerCase().split(", ");
    const ours = ["if-match", "idempotency-key", "x-api-key"];
    // What tracing in browsers and common libraries add by themselves.
    const others = ["traceparent", "tracestate", "baggage", "sentry-trace", "x-requested-with", "cache-control"];
    expect(allowed).toEqual(expect.arrayContaining([...ours, ...others]));
    const called = await open.call("/pets/404", { headers: { origin } });
    expect([called.status, called.headers.get("access-control-allow-origin")]).toEqual([404, origin]);
    const exposed = called.headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
    expect(exposed).toEqual(
      expect.arrayContaining(["etag", "location", "link", "sunset", "grpc-status", "retry-after"]),
    );
  });

  test("are told apart by caches, and so is what they accept", async () => {
    const vary = async (path: string, init: RequestInit = {}) => (await open.call(path, init)).headers.get("vary");
    expect(await vary("/pets/1", { headers: { origin } })).toBe("Origin, Accept");
    expect(await vary("/pets/1")).toBe("Origin, Accept");
    expect(await vary("/pets/404", { headers: { origin } })).toBe("Origin, Accept");
    expect(await vary("/nowhere")).toBe("Origin, Accept");
    expect(await vary("/", { headers: { origin, accept: "text/html" } })).toBe("Origin, Accept");
    expect(await vary("/pets/1", preflight)).toBe("Origin");
    expect((await shut.call("/pets/1", { headers: { origin } })).headers.get("vary")).toBe("Accept");
  });

  test("may not call from others", async () => {
    const { headers } = await open.call("/pets/1", { headers: { origin: "https://evil.example" } });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  test("leave OPTIONS by itself as it is", async () => {
    const { status, headers } = await open.call("/pets/1", { method: "OPTIONS" });
    expect([status, headers.get("allow")]).toEqual([204, "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"]);
  });

  test("are told nothing when no origin is configured", async () => {
    const asked = await shut.call("/pets/1", preflight);
    const called = await shut.call("/pets/1", { headers: { origin } });
    for (const { headers } of [asked, called])
      expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});
