/** TLS at a port: which version and protocol, which certificate, and what becomes of those who don't get that far. */
import { once } from "node:events";
import { request as http1Request, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import tls, { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { pino } from "pino";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Authority, Pair } from "../../../scripts/certificates.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import { newAuthority, openFiles, PEER_NAME, pairOf, yesterday } from "../fixtures/tls.ts";
import { isProven } from "../http/connections.ts";
import type { OnePortLimits } from "../http/limits.ts";
import { closePort } from "../http/one-port.ts";
import type { Handler } from "../http/requests.ts";

const never = 2 ** 30;

let authority: Authority;
let pair: Pair;
beforeAll(async () => {
  authority = await newAuthority();
  pair = await pairOf(authority);
});

/** Answers with the version of HTTP, and whether the caller has proved to be one of the system's own processes. */
const tell: Handler = async (request, response) => {
  const body = await text(request).catch(() => undefined);
  if (body !== undefined)
    response.end(`${request.httpVersion} ${body.length} ${isProven(request) ? "own" : "stranger"}`);
};

async function start({ handler = tell, limits = {}, peers = false }: Partial<Options> = {}) {
  const files = await openFiles({ ...pair, ca: peers ? authority.cert : undefined });
  const logged: { msg: string; problem?: string; others?: number }[] = [];
  const log = pino({}, { write: (line: string) => logged.push(JSON.parse(line)) });
  const { certificates } = files;
  const started = await startOnePort(handler, limits, { tls: { certificates, peerNames: [PEER_NAME] }, log });
  return { ...files, ...started, logged, readLog: files.logged };
}
interface Options {
  readonly handler: Handler;
  readonly limits: Partial<OnePortLimits>;
  /** Own processes are asked for their certificate. */
  readonly peers: boolean;
}

function open(port: number, options: ConnectionOptions = {}): TLSSocket {
  const socket = connectTls({ port, host: "127.0.0.1", ca: authority.cert, ...options }).on("error", () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}
function tcp(port: number): Socket {
  const socket = connectTcp(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}
const closed = (socket: Socket) => new Promise<void>((resolve) => socket.resume().once("close", () => resolve()));

function http2(url: string, options: ConnectionOptions = {}): ClientHttp2Session {
  const session = connectHttp2(url, { ca: authority.cert, ...options }).on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}
const post = (session: ClientHttp2Session, body = "") => text(session.request({ ":method": "POST" }).end(body));

/** Over a connection that is open. */
async function http1(socket: TLSSocket, body = ""): Promise<string> {
  const request = http1Request({ createConnection: () => socket, method: "POST" }).end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return text(response);
}

/** The serial number of the certificate that a new connection is shown. */
async function serial(port: number): Promise<string> {
  const socket = open(port);
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

const large = "x".repeat(300_000);

describe("a handshake", () => {
  test.each([
    [["h2"], "h2"],
    [["http/1.1"], "http/1.1"],
    [["h2", "http/1.1"], "h2"],
    [["http/1.0", "http/1.1"], "http/1.1"],
  ])("of a client that offers %j agrees on %s", async (ALPNProtocols, expected) => {
    const { port } = await start();
    const socket = open(port, { ALPNProtocols });
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe(expected);
  });

  test("leads to HTTP/2 or to HTTP/1.1, whichever was agreed on or is spoken", async () => {
    const { port, url } = await start();
    expect(await post(http2(url), large)).toBe(`2.0 ${large.length} stranger`);
    expect(await http1(open(port, { ALPNProtocols: ["http/1.1"] }), large)).toBe(`1.1 ${large.length} stranger`);
    expect(await http1(open(port), large)).toBe(`1.1 ${large.length} stranger`);
  });

  test("fails for a client that offers no protocol that is spoken here", async () => {
    const { port } = await start();
    const [error] = await once(open(port, { ALPNProtocols: ["h3"] }), "error");
    expect(error.code).toBe("ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL");
  });

  test("takes TLS 1.2 and 1.3, and nothing older, even where Node would", async () => {
    const { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS } = tls;
    onTestFinished(() => void Object.assign(tls, { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS }));
    Object.assign(tls, { DEFAULT_MIN_VERSION: "TLSv1", DEFAULT_CIPHERS: "DEFAULT@SECLEVEL=0" });
    const { port } = await start();
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const socket = open(port, { minVersion: version, maxVersion: version });
      await once(socket, "secureConnect");
      expect(socket.getProtocol()).toBe(version);
    }
    for (const version of ["TLSv1.1", "TLSv1"] as const) {
      const [error] = await once(open(port, { minVersion: version, maxVersion: version }), "error");
      expect(error.code).toBe("ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION");
    }
  });
});

test("a request of several records is read while an earlier answer is still being written", async () => {
  const large = 32 * 1024 * 1024; // more than the kernel's buffers hold, so that the client has to read it
  const arrived: string[] = [];
  const { port } = await start({
    handler: async (request, response) => {
      arrived.push(request.url ?? "");
      await text(request).catch(() => "");
      if (request.url === "/large") response.end(Buffer.alloc(large, "x"));
      else response.end(`${arrived.length}`);
    },
    limits: { waitingBytes: never, writeMs: never },
  });
  const raw = tcp(port);
  let records: Buffer[] | undefined;
  const between = new Duplex({
    read: () => void raw.resume(),
    write: (chunk, _, done) => void (records ? done(void records.push(chunk)) : raw.write(chunk, done)),
  });
  raw.on("data", (bytes) => between.push(bytes) || raw.pause()).on("end", () => between.push(null));
  const socket = open(port, { socket: between });
  await once(socket, "secureConnect");
  socket.write("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await expect.poll(() => arrived).toEqual(["/large"]);
  records = [];
  socket.write("POST /small HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 3\r\n\r\n");
  socket.write("abc");
  await expect.poll(() => records?.length).toBe(2);
  raw.write(Buffer.concat(records));
  await expect.poll(() => arrived).toEqual(["/large", "/small"]);
  expect((await text(socket)).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
});

test("a client can't ask for another handshake on its connection", async () => {
  const { port } = await start();
  const socket = open(port, { maxVersion: "TLSv1.2" });
  await once(socket, "secureConnect");
  const failure = new Promise<unknown>((resolve) => {
    socket.on("error", resolve);
    socket.renegotiate({}, resolve);
  });
  expect(await failure).toMatchObject({ code: expect.stringMatching(/NO_RENEGOTIATION/) });
});

describe("another certificate", () => {
  const cutOff = ({ cert }: { cert: string }) => `${cert.slice(0, 200)}\n`;

  test("is shown to new connections, while those that are open, and what runs on them, go on", async () => {
    const held = Promise.withResolvers<void>();
    const handler: Handler = async (request, response) => {
      request.resume();
      response.write("begun ");
      await held.promise;
      response.end("finished");
    };
    const { port, url, certificates, exchange } = await start({ handler });
    const before = await serial(port);
    const session = http2(url);
    const stream = session.request({ ":method": "POST" }).end();
    const answer = text(stream);
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(200);
    const other = await pairOf(authority);
    await exchange(other);
    await certificates.reload();
    const after = await serial(port);
    expect(after).not.toBe(before);
    held.resolve();
    expect(await answer).toBe("begun finished");
    expect(await post(session)).toBe("begun finished");
  });

  test("may begin with a byte order mark, and so may what it comes with", async () => {
    const { port, certificates, exchange } = await start({ peers: true });
    const before = await serial(port);
    const { cert, key } = await pairOf(authority);
    await exchange({ cert: `\ufeff${cert}`, key: `\ufeff${key}`, ca: `\ufeff${authority.cert}` });
    await certificates.reload();
    expect(await serial(port)).not.toBe(before);
  });

  test.each([
    [
      "of another key",
      async () => ({ ...pair, key: (await pairOf(authority)).key }),
      /key.pem is not the key of the certificate in .*cert.pem/,
    ],
    ["that is none", async () => ({ ...pair, cert: pair.key }), /cert.pem holds no certificate/],
    ["that is cut off", async () => ({ ...pair, cert: cutOff(pair) }), /certificate 1 of 1 in .*cert.pem is damaged/],
    [
      "with what stands between it and its authority cut off",
      async () => ({ ...pair, cert: pair.cert + cutOff(authority) }),
      /certificate 2 of 2 in .*cert.pem is damaged/,
    ],
    [
      "with the second of its authorities cut off",
      async () => ({ ...pair, ca: authority.cert + cutOff(authority) }),
      /certificate 2 of 2 in .*ca.pem is damaged/,
    ],
    ["with an authority that is none", async () => ({ ...pair, ca: "-----BEGIN" }), /ca.pem holds no certificate/],
  ])("%s leaves the one before, and is told once", async (_, broken, problem) => {
    const { port, certificates, exchange, readLog } = await start({ peers: true });
    const before = await serial(port);
    await exchange({ ca: authority.cert, ...(await broken()) });
    for (let i = 0; i < 3; i++) await certificates.reload();
    expect(await serial(port)).toBe(before);
    await exchange({ ...(await pairOf(authority)), ca: authority.cert });
    await certificates.reload();
    expect(await serial(port)).not.toBe(before);
    expect(readLog).toMatchObject([
      {
        msg: "the certificate can't be used: the one that was read before stays in use",
        problem: expect.stringMatching(problem),
      },
      { msg: "the certificate was read again", names: expect.stringContaining("DNS:localhost") },
    ]);
  });
});

describe("those who don't get that far", () => {
  test("plain HTTP is told to use https", async () => {
    const { port } = await start();
    expect(await text(tcp(port).end("GET / HTTP/1.1\r\nhost: a\r\n\r\n"))).toMatch(/^HTTP\/1\.1 400 [\s\S]*https/);
  });

  test.each([
    ["says nothing", ""],
    ["stops in its first record", "\x16\x03\x01\x02\x00\x01"],
  ])("one that %s is disconnected in time", async (_, sent) => {
    const { port } = await start({ limits: { sniffMs: 100 } });
    const socket = tcp(port);
    socket.write(sent, "latin1");
    await closed(socket);
  });

  test("one that stops after its first record is disconnected in time", async () => {
    const { port, logged } = await start({ limits: { sniffMs: 300 } });
    const hello = await clientHello();
    const socket = tcp(port);
    socket.write(hello);
    await closed(socket);
    expect(logged).toMatchObject([{ msg: "a TLS handshake failed", problem: "ERR_TLS_HANDSHAKE_TIMEOUT" }]);
  });

  test("what is no handshake is told in a line, however many there are, and harms nobody else", async () => {
    const { port, url, logged } = await start();
    const session = http2(url);
    expect(await post(session)).toBe("2.0 0 stranger");
    const broken = Buffer.from("\x16\x03\x01\x00\x04\x01\x00\x00\x00", "latin1");
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = tcp(port);
        socket.write(broken);
        await closed(socket);
      }),
    );
    expect(await post(session)).toBe("2.0 0 stranger");
    expect(logged.length).toBeGreaterThan(0);
    expect(logged.length).toBeLessThan(10);
  });

  test("one that is reset in the middle of its handshake harms nobody else", async () => {
    const { port, url } = await start();
    const hello = await clientHello();
    for (let i = 0; i < 10; i++) {
      const socket = tcp(port);
      await new Promise<void>((resolve) => socket.write(hello, () => resolve()));
      socket.resetAndDestroy();
    }
    expect(await post(http2(url))).toBe("2.0 0 stranger");
  });

  test.each([
    ["with its first record", async (socket: Socket, hello: Buffer) => void socket.end(hello)],
    [
      "when it was answered",
      async (socket: Socket, hello: Buffer) => {
        socket.write(hello);
        await once(socket, "data");
        socket.end();
      },
    ],
  ])("one whose client ends its side %s is given up at once", async (_, end) => {
    const { port } = await start({ limits: { sniffMs: never } });
    for (let i = 0; i < 20; i++) {
      const socket = connectTcp({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
      onTestFinished(() => void socket.destroy());
      await end(socket, await clientHello());
      await closed(socket);
    }
  });

  test("counts as a connection from the first moment on", async () => {
    const { port, server } = await start({ limits: { sniffMs: never, connectionsPerAddress: 2 } });
    const first = tcp(port);
    await once(server, "connection");
    const others = [open(port), open(port)];
    await closed(first);
    for (const socket of others) if (socket.connecting || !socket.authorized) await once(socket, "secureConnect");
  });

  test("a server that closes does not wait for it", async () => {
    const { server, port } = await start({ limits: { sniffMs: never } });
    const accepted = once(server, "connection");
    const [silent, halfway] = [tcp(port), tcp(port)];
    await accepted;
    halfway.write(await clientHello());
    await once(halfway, "data");
    await Promise.all([closePort(server, never), closed(silent), closed(halfway)]);
  });
});

describe("own processes", () => {
  const show = async (asked: Parameters<typeof pairOf>[1] = {}, from = authority) => pairOf(from, asked);

  test("are known by a certificate of the authority with their name, over either version of HTTP", async () => {
    const { port, url } = await start({ peers: true });
    const shown = await show();
    expect(await post(http2(url, shown))).toBe("2.0 0 own");
    expect(await http1(open(port, shown))).toBe("1.1 0 own");
  });

  test.each([
    ["with another name", () => show({ names: ["localhost", `${PEER_NAME}/other`] }), "it bears another name"],
    ["from another authority", async () => show({}, await newAuthority("b")), "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
    ["from one of the same name", async () => show({}, await newAuthority()), "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
    ["that has expired", () => show({ notAfter: yesterday }), "CERT_HAS_EXPIRED"],
  ])("a certificate %s is a stranger's", async (_, make, problem) => {
    const { url, logged } = await start({ peers: true });
    expect(await post(http2(url, await make()))).toBe("2.0 0 stranger");
    expect(logged).toMatchObject([
      { msg: "a client's certificate is none of the system's own processes", problem, address: "127.0.0.1" },
    ]);
  });

  test("whoever shows none is a stranger, and nothing is said of it", async () => {
    const { url, logged } = await start({ peers: true });
    expect(await post(http2(url))).toBe("2.0 0 stranger");
    expect(logged).toEqual([]);
  });

  test("a session that is resumed proves nothing: what it stands for may have ended", async () => {
    const { port } = await start({ peers: true });
    const shown = await show();
    const first = open(port, shown);
    const ticket = once(first, "session");
    expect(await http1(first)).toBe("1.1 0 own");
    const [session] = await ticket;
    const second = open(port, { ...shown, session });
    expect(await http1(second)).toBe("1.1 0 stranger");
    expect(second.isSessionReused()).toBe(true);
  });

  test("nobody is asked without an authority", async () => {
    const { url } = await start();
    expect(await post(http2(url, await show()))).toBe("2.0 0 stranger");
  });
});

/** What a client sends first, and nothing of what follows. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection") as Promise<[Socket]>;
  open(port, { ALPNProtocols: ["h2"] });
  const [socket] = await accepted;
  onTestFinished(() => void socket.destroy());
  const [hello] = (await once(socket, "data")) as [Buffer];
  return hello;
}
