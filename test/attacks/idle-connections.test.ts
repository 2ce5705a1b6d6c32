/** More connections than there may be, and all of them idle: others get through, at the latest with a second try. */
import { once } from "node:events";
import { get } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { envelope } from "../../packages/rpc/fixtures/envelope.ts";
import { type Attacked, startAttacked, type Target, timeout } from "./flood.ts";
import { begin, http1, http2, listPath } from "./requests.ts";

let attacked: Attacked;
beforeAll(async () => {
  attacked = await startAttacked();
}, timeout);
afterAll(() => attacked?.[Symbol.asyncDispose]());

const SMALL: Record<Target, string> = { gateway: "/pets?limit=1", pet: listPath(1) };
/** MAX_CONNECTIONS is 1,000. */
const TOO_MANY = 1300;
/** MAX_CONNECTIONS_PER_ADDRESS is 500. */
const TOO_MANY_OF_ONE = 700;

async function healthz(port: number): Promise<void> {
  const [response] = await once(get({ port, path: "/healthz", agent: false, timeout: 20_000 }), "response");
  expect([response.statusCode, await text(response)]).toEqual([200, expect.stringContaining("ok")]);
}

/** The health check of gRPC, of the whole process. */
async function grpcHealth(port: number): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const failed = new Promise<never>((_, reject) => void session.once("error", reject).once("close", reject));
  failed.catch(() => {});
  try {
    const path = "/grpc.health.v1.Health/Check";
    const asked = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
    const stream = session.request(asked, { signal: AbortSignal.timeout(20_000) });
    stream.end(envelope(Buffer.alloc(0)));
    const [trailers] = await Promise.race([once(stream.resume(), "trailers"), failed]);
    expect(trailers["grpc-status"]).toBe("0");
  } finally {
    session.destroy();
  }
}

/** At the latest with a second try. */
const getsThrough = (probe: () => Promise<void>) => probe().catch(probe);

const idle = (which: Target): [string, Buffer, number][] => [
  ["silent", Buffer.alloc(0), 0],
  ["answered, over HTTP/1.1", http1(`GET ${SMALL[which]}`), 1],
  ["with HTTP/2 sessions", begin, 0],
  ["answered, over HTTP/2", Buffer.concat([begin, http2("GET", SMALL[which], 1)]), 1],
];

describe.each<Target>(["gateway", "pet"])("more idle connections than allowed, at %s", (which) => {
  const probe = which === "gateway" ? healthz : grpcHealth;

  test("silent, from the address of the probe", { timeout }, async ({ annotate }) => {
    const seen = await attacked.survives(which, async (flood) => {
      await flood.connect(TOO_MANY_OF_ONE, () => {}, { reads: true, from: "127.0.0.1" });
      for (let i = 0; i < 10; i++) await getsThrough(() => probe(flood.port));
    });
    await annotate(seen);
  });

  test.for(idle(which))("%s", { timeout }, async ([, bytes], { annotate }) => {
    const seen = await attacked.survives(which, async (flood) => {
      await flood.connect(TOO_MANY, (socket) => bytes.length > 0 && socket.write(bytes), { reads: true });
      for (let i = 0; i < 10; i++) await getsThrough(() => probe(flood.port));
    });
    await annotate(seen);
  });
});
