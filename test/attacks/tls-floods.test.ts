/** The same floods over TLS, and handshakes that are begun and left. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, test } from "vitest";
import { END_HEADERS, headers, streams } from "../../packages/rpc/fixtures/frames.ts";
import { PEER_NAME } from "../../processes/credentials.ts";
import { createAuthority } from "../../scripts/certificates.ts";
import { type Attacked, type Flood, startAttacked, timeout } from "./flood.ts";
import { begin, closedWindow, DOCS_PAGE, data, fields } from "./requests.ts";

let attacked: Attacked;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "floods-"));
  const at = (file: string) => join(directory, file);
  const now = Date.now();
  const validity = { notBefore: new Date(now - 3_600_000), notAfter: new Date(now + 86_400_000) };
  const authority = await createAuthority("an authority", validity);
  const { cert, key } = await authority.issue({ names: ["localhost", "127.0.0.1", PEER_NAME], ...validity });
  await Promise.all([
    writeFile(at("cert.pem"), cert),
    writeFile(at("key.pem"), key),
    writeFile(at("ca.pem"), authority.cert),
  ]);
  attacked = await startAttacked({
    env: { TLS_CERT: at("cert.pem"), TLS_KEY: at("key.pem"), INTERNAL_TLS_CA: at("ca.pem") },
  });
}, timeout);
afterAll(async () => {
  await attacked?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const unread = Buffer.concat([
  closedWindow,
  ...streams(100).map((stream) => headers(stream, fields("GET", DOCS_PAGE))),
]);
const unfinished = Buffer.concat([
  begin,
  ...streams(100).flatMap((stream) => [
    headers(stream, fields("POST", "/categories", "application/json"), END_HEADERS),
    data(stream, "{"),
  ]),
]);

/** What a client sends first; it comes from a connection of its own that goes nowhere. */
async function clientHello(): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => socket.once("data", resolve).on("error", () => {})).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  const { port } = server.address() as { port: number };
  const socket = connectTls({ port, host: "127.0.0.1", ALPNProtocols: ["h2"] }).on("error", () => {});
  try {
    return await promise;
  } finally {
    socket.destroy();
    server.close();
  }
}

/** Many connections below TLS. */
const handshakes = (bytes: (hello: Buffer) => Buffer, times: number) => async (flood: Flood) => {
  const sent = bytes(await clientHello());
  for (let i = 0; i < times; i++) {
    const socket = connect({ port: flood.port, host: "127.0.0.1", localAddress: flood.from() }).on("error", () => {});
    socket.write(sent);
    flood.defer(() => socket.destroy());
  }
};

test.for<[string, (flood: Flood) => Promise<void>]>([
  ["handshakes whose first byte comes, and no more", handshakes((hello) => hello.subarray(0, 1), 600)],
  ["handshakes that are begun and left", handshakes((hello) => hello, 600)],
  ["handshakes that go on with nonsense", handshakes((hello) => Buffer.concat([hello, Buffer.alloc(15_000, 22)]), 600)],
  ["answers over TLS that nobody reads", (flood) => flood.connect(20, (socket) => socket.write(unread))],
  ["requests over TLS that never end", (flood) => flood.connect(100, (socket) => socket.write(unfinished))],
])("%s", { timeout }, async ([, attack], { annotate }) => {
  await annotate(await attacked.survives("gateway", attack));
});
