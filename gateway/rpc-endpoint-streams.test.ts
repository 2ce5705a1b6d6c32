/** The services have no streaming RPC yet. One of another contract passes through all the same. */
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reasonOf, rpcError } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../packages/rpc/gen/health/v1/health_pb.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";
import { startGateway } from "./testing.ts";

let gateway: Awaited<ReturnType<typeof startGateway>>;
let seen: Headers;
/** Lets the service send its second message. */
let goOn = () => {};
let left = Promise.withResolvers<void>();

beforeAll(async () => {
  const transport = createRouterTransport(({ service }) =>
    service(Health, {
      async *watch(request, { requestHeader, responseHeader, responseTrailer, signal }) {
        seen = requestHeader;
        signal.addEventListener("abort", () => left.resolve());
        responseHeader.set("x-before", "the first");
        yield { status: Status.SERVING };
        if (request.service === "fails") throw rpcError("OVERLOADED", "Too much.");
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        responseTrailer.set("x-after", "the last");
        yield { status: Status.NOT_SERVING };
      },
    }),
  );
  const limits = { rpcBytes: 1024, requestMs: 1 };
  const endpoint = rpcEndpoint({ basePath: "", services: [{ desc: Health, transport }], limits, clock: Date.now });
  gateway = await startGateway(PetService, {}, { plugins: [endpoint] });
});
afterAll(() => gateway.app.close());

describe.each([
  ["Connect", createConnectTransport],
  ["gRPC-Web", createGrpcWebTransport],
] as const)("%s", (_, open) => {
  const client = () => createClient(Health, open({ baseUrl: gateway.base, httpVersion: "1.1" }));

  test("messages pass as they come, with headers and trailers, without a limit of time", async () => {
    const metadata: Record<string, string | null> = {};
    const answers = client()
      .watch(
        {},
        {
          headers: { "x-internal-caller": "root" },
          onHeader: (headers) => Object.assign(metadata, { before: headers.get("x-before") }),
          onTrailer: (trailers) => Object.assign(metadata, { after: trailers.get("x-after") }),
        },
      )
      [Symbol.asyncIterator]();
    expect((await answers.next()).value?.status).toBe(Status.SERVING);
    expect([seen.get("x-internal-caller"), metadata]).toEqual(["anonymous", { before: "the first" }]);
    goOn();
    expect((await answers.next()).value?.status).toBe(Status.NOT_SERVING);
    expect((await answers.next()).done).toBe(true);
    expect(metadata.after).toBe("the last");
  });

  test("an error in the middle of a stream comes with its reason", async () => {
    const answers = client().watch({ service: "fails" })[Symbol.asyncIterator]();
    await answers.next();
    const error = await answers.next().catch((thrown) => ConnectError.from(thrown));
    if (!(error instanceof ConnectError)) return expect.fail("no error");
    expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unavailable, "OVERLOADED"]);
  });

  test("a caller that leaves ends the stream at the service", async () => {
    left = Promise.withResolvers();
    const gone = new AbortController();
    const answers = client().watch({}, { signal: gone.signal })[Symbol.asyncIterator]();
    await answers.next();
    gone.abort();
    await expect(answers.next()).rejects.toThrow();
    await left.promise;
    goOn();
  });
});
