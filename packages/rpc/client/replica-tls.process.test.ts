/** An address that begins with https is verified, whatever else is set. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../../runtime/fixtures/run.ts";

let directory: string;
let server: Http2SecureServer;
let port: number;
let streams = 0;
const certificate = () => join(directory, "cert.pem");

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "petstore-tls-"));
  const key = join(directory, "key.pem");
  await promisify(execFile)("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"],
    ...["-subj", "/CN=petstore", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate()],
  ]);
  server = createSecureServer({ key: await readFile(key), cert: await readFile(certificate()) });
  server.on("stream", (stream: ServerHttp2Stream) => {
    streams++;
    // Trailers only: an answer is not what this is about.
    const headers = { ":status": 200, "content-type": "application/grpc", "grpc-status": "5", "grpc-message": "here" };
    stream.respond(headers, { endStream: true });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server?.close();
  await rm(directory, { recursive: true, force: true });
});

/** What a process with this environment is told when it calls. */
async function call(host: string, env: Record<string, string>): Promise<string> {
  await using caller = run([join(import.meta.dirname, "../fixtures/caller.ts"), `https://${host}:${port}`], env);
  const [line] = await caller.printed(/^\w+: .*$|^answered$/m);
  return line;
}

test("a certificate that nobody vouches for is refused before anything is sent", { timeout: 60_000 }, async () => {
  const refused = `Unavailable: no connection to https://127.0.0.1:${port}: self-signed certificate`;
  expect(await call("127.0.0.1", {})).toContain(refused);
  expect(await call("127.0.0.1", { NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toContain(refused);
  expect(streams).toBe(0);
});

test("one of an authority that is trusted is believed, for its own names", { timeout: 60_000 }, async () => {
  const env = { NODE_EXTRA_CA_CERTS: certificate() };
  expect(await call("127.0.0.1", env)).toBe("NotFound: here");
  expect(await call("localhost", env)).toMatch(/^Unavailable: no connection to .*: Hostname\/IP does not match/);
  expect(streams).toBe(1);
});
