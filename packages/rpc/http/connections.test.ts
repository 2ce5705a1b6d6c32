/** The bounds of a server's connections, without a network: sockets and responses are stood in for. */
import { EventEmitter, once } from "node:events";
import { type IncomingMessage, Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { bytesTaken, countData } from "./connection.ts";
import { type ConnectionLimits, countAsStream, defaultConnectionLimits, guardConnections } from "./connections.ts";
import { isRefused } from "./request-memory.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

function guarded(limits: Partial<ConnectionLimits>) {
  const server = new Server();
  server.removeAllListeners("connection");
  const [served, begun] = [vi.fn(), vi.fn()];
  server.on("connection", served).on("request", (_, response) => begun(response));
  const knowsPeer = ({ headers }: IncomingMessage) => headers.secret !== undefined;
  const connections = guardConnections(server, { ...defaultConnectionLimits, ...limits }, { knowsPeer });
  function connect(remoteAddress = "192.0.2.1") {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      destroyed: false,
      _handle: { bytesWritten: 0, writeQueueSize: 0 },
      setKeepAlive: vi.fn(),
      destroy() {
        socket.destroyed = true;
        socket.emit("close");
      },
    });
    server.emit("connection", socket);
    return socket;
  }
  /** `waits` are the bytes that its client has not taken. */
  function request(socket: ReturnType<typeof connect>, headers: Record<string, string> = {}) {
    const incoming = Object.assign(new EventEmitter(), { socket, headers, rawHeaders: [], httpVersionMajor: 1 });
    const response = Object.assign(new EventEmitter(), {
      writableLength: 0,
      writableFinished: false,
      closed: false,
      write(bytes: number) {
        response.writableLength += bytes;
      },
      end(bytes = 0) {
        response.writableLength += bytes;
      },
      taken(bytes: number) {
        response.writableLength -= bytes;
        response.emit("drain");
      },
      close() {
        response.closed = response.writableFinished = true;
        response.emit("finish");
        response.emit("close");
      },
    });
    server.emit("request", incoming as unknown as IncomingMessage, response as unknown as ServerResponse);
    return { incoming, response };
  }
  return { connections, connect, request, served, begun };
}

const upload = { "content-length": "10" };

describe("the number of connections", () => {
  test("is bounded for one address: a new one takes the place of the one that was idle longest", () => {
    const { connect, request, served } = guarded({ connectionsPerAddress: 3 });
    const [a, b, c] = [connect(), connect(), connect()];
    request(a).response.close();
    const d = connect();
    expect([a, b, c, d].map(({ destroyed }) => destroyed)).toEqual([false, true, false, false]);
    expect(served).toHaveBeenCalledTimes(4);
  });

  test("one with a stream does not count as long as it lasts, and its client is looked for", () => {
    const { connect, request } = guarded({ connections: 3, connectionsPerAddress: 1 });
    const streaming = Array.from({ length: 5 }, () => {
      const socket = connect();
      const { incoming, response } = request(socket);
      countAsStream(incoming as never, response as never);
      return { socket, response };
    });
    const short = connect();
    request(short);
    expect([...streaming.map(({ socket }) => socket), short].some(({ destroyed }) => destroyed)).toBe(false);
    expect(streaming[0]?.socket.setKeepAlive).toHaveBeenCalledWith({
      enable: true,
      initialDelay: 5_000,
      interval: 3_000,
      count: 3,
    });
    const beyond = connect();
    expect(beyond.destroyed).toBe(true);
    // It counts again, and is idle: it makes room for another.
    streaming[0]?.response.close();
    const other = connect();
    expect([streaming[0]?.socket.destroyed, other.destroyed]).toEqual([true, false]);
    for (const { socket } of streaming) socket.destroy();
    short.destroy();
    expect([connect("192.0.2.2"), connect(), connect("192.0.2.3")].some(({ destroyed }) => destroyed)).toBe(false);
  });

  test.each(["its request", "its connection"])("what begins a stream when %s is over counts for nothing", (what) => {
    const { connect, request } = guarded({ connections: 3, connectionsPerAddress: 3 });
    for (let i = 0; i < 5; i++) {
      const socket = connect();
      const { incoming, response } = request(socket);
      if (what === "its request") response.close();
      socket.destroy();
      countAsStream(incoming as never, response as never);
    }
    for (let i = 0; i < 3; i++) request(connect());
    expect([connect(), connect("192.0.2.2")].map(({ destroyed }) => destroyed)).toEqual([true, true]);
  });

  test("one whose stream was reset before it began counts as any other", () => {
    const { connect, request } = guarded({ connectionsPerAddress: 1 });
    const socket = connect();
    const { incoming, response } = request(socket);
    response.close();
    countAsStream(incoming as never, response as never);
    request(socket);
    expect(connect().destroyed).toBe(true);
  });

  test("one that is served keeps its place; one whose request still arrives doesn't", () => {
    const { connect, request } = guarded({ connectionsPerAddress: 2 });
    const [served, sending] = [connect(), connect()];
    request(served);
    const { incoming } = request(sending, upload);
    const third = connect();
    expect([served, sending, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    incoming.emit("end");
    request(third, upload).incoming.emit("end");
    expect(connect().destroyed).toBe(true);
    expect([served, third].map(({ destroyed }) => destroyed)).toEqual([false, false]);
  });

  test("where all are served, a new one is closed, until one of them is idle", () => {
    const { connect, request, served } = guarded({ connectionsPerAddress: 1 });
    const only = connect();
    const { response } = request(only);
    expect(connect().destroyed).toBe(true);
    expect(served).toHaveBeenCalledTimes(1);
    response.close();
    expect(connect().destroyed).toBe(false);
    expect(only.destroyed).toBe(true);
  });

  test("one address leaves the others alone", () => {
    const { connect, request } = guarded({ connectionsPerAddress: 1 });
    const other = connect("192.0.2.2");
    request(connect("192.0.2.1"));
    expect(connect("192.0.2.1").destroyed).toBe(true);
    expect(other.destroyed).toBe(false);
  });

  test("of IPv6 counts by network", () => {
    const { connect, request } = guarded({ connectionsPerAddress: 1 });
    request(connect("2001:db8::1"));
    expect(connect("2001:db8::2").destroyed).toBe(true);
    expect(connect("2001:db8:0:1::1").destroyed).toBe(false);
    request(connect("::ffff:192.0.2.1"));
    expect(connect("::ffff:192.0.2.2").destroyed).toBe(false);
  });

  test("is bounded in all, whatever the addresses", () => {
    const { connect, request } = guarded({ connections: 2 });
    const [a, b] = [connect("192.0.2.1"), connect("192.0.2.2")];
    request(a);
    const c = connect("192.0.2.3");
    expect([a, b, c].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    request(c);
    expect(connect("192.0.2.4").destroyed).toBe(true);
  });

  test("a peer is not counted with its address, and keeps its place when idle", () => {
    const { connect, request } = guarded({ connectionsPerAddress: 1 });
    const peer = connect();
    request(peer, { secret: "known" }).response.close();
    const strangers = [connect(), connect()];
    expect(peer.destroyed).toBe(false);
    expect(strangers.map(({ destroyed }) => destroyed)).toEqual([true, false]);
  });

  test("a closed one makes room", () => {
    const { connect, request } = guarded({ connections: 1 });
    const first = connect();
    request(first);
    first.destroy();
    expect(connect().destroyed).toBe(false);
  });
});

test("an error that nobody else listens to is none of the process", () => {
  const { connect, request } = guarded({ connectionsPerAddress: 1 });
  const socket = connect();
  const { incoming, response } = request(socket);
  const refused = connect();
  for (const emitter of [socket, incoming, response, refused]) emitter.emit("error", new Error("reset"));
});

test("a request that arrives on a connection that was given up is not begun, though its socket be still closing", () => {
  const { connect, request, begun } = guarded({ connectionsPerAddress: 1 });
  const givenUp = Object.assign(connect(), { destroy() {} });
  const other = connect();
  request(givenUp);
  expect(begun).not.toHaveBeenCalled();
  request(other);
  expect(begun).toHaveBeenCalledTimes(1);
});

test("what requests take is counted of strangers, not of peers", () => {
  const { connections, connect, request } = guarded({ requestBytes: 1000 });
  const [stranger, peer] = [connect(), connect()];
  const known = { secret: "known" };
  expect([peer, peer].map((socket) => isRefused(request(socket, known).incoming as never))).toEqual([false, false]);
  expect(connections.held()).toBe(0);
  const { incoming, response } = request(stranger);
  expect(isRefused(incoming as never)).toBe(true);
  expect(connections.held()).toBeGreaterThan(0);
  response.close();
  expect(connections.held()).toBe(0);
});

describe("answers that wait", () => {
  test("are given up, with their connection, when nothing is taken for a time", () => {
    const { connections, connect, request } = guarded({ writeMs: 1000 });
    const socket = connect();
    request(socket).response.end(10);
    expect(connections.waiting()).toBe(10);
    vi.advanceTimersByTime(999);
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
    expect(connections.waiting()).toBe(0);
  });

  test("go on for a client that takes a part of them each time", () => {
    const { connect, request } = guarded({ writeMs: 1000 });
    const socket = connect();
    const { response } = request(socket);
    response.write(10);
    for (let i = 0; i < 9; i++) {
      vi.advanceTimersByTime(900);
      response.taken(1);
    }
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1000);
    expect(socket.destroyed).toBe(true);
  });

  test("go on for a client that takes a part of one write each time", () => {
    const { connect, request } = guarded({ writeMs: 1000 });
    const socket = connect();
    Object.assign(socket._handle, { bytesWritten: 100, writeQueueSize: 100 });
    request(socket).response.end(100);
    for (let i = 0; i < 9; i++) {
      socket._handle.writeQueueSize -= 10;
      vi.advanceTimersByTime(1000);
    }
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1000);
    expect(socket.destroyed).toBe(true);
  });

  test("go on for a client of HTTP/2 that takes a part of one write each time, and not for frames beside it", () => {
    const { connect, request } = guarded({ writeMs: 1000 });
    const [slow, hostile] = [connect(), connect()].map((socket) => {
      const waiting = Object.assign(socket, { writableLength: 0 });
      countData(waiting as never, () => 0);
      request(socket).response.end(100);
      return waiting;
    }) as [{ writableLength: number } & ReturnType<typeof connect>, ReturnType<typeof connect>];
    slow.writableLength = 100; // what the window lets through is written a little later
    for (let i = 0; i < 9; i++) {
      for (const { _handle } of [slow, hostile]) _handle.bytesWritten += 10;
      vi.advanceTimersByTime(1000);
    }
    expect([slow.destroyed, hostile.destroyed]).toEqual([false, true]);
    vi.advanceTimersByTime(1000);
    expect(slow.destroyed).toBe(true);
  });

  test("are looked at by one timer, however many clients take a part of them each time", () => {
    const { connect, request } = guarded({ writeMs: 1000 });
    const sockets = Array.from({ length: 5 }, () => {
      const socket = connect();
      request(socket).response.end(100);
      vi.advanceTimersByTime(10);
      return socket;
    });
    for (let i = 0; i < 20; i++) {
      for (const { _handle } of sockets) _handle.bytesWritten++;
      vi.advanceTimersByTime(1000);
    }
    expect(sockets.some(({ destroyed }) => destroyed)).toBe(false);
    expect(vi.getTimerCount()).toBe(1);
  });

  test("a part of one write is seen to be taken", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connectTcp((server.address() as AddressInfo).port, "127.0.0.1").pause();
    const [socket]: Socket[] = await once(server, "connection");
    if (!socket) return expect.fail("no connection");
    const written = vi.fn();
    socket.on("error", () => {}).write(Buffer.alloc(64 * 1024 * 1024), written);
    const before = bytesTaken(socket);
    const some = Promise.withResolvers<void>();
    client.on("data", () => {
      if (bytesTaken(socket) <= before) return;
      client.pause();
      some.resolve();
    });
    client.resume();
    await some.promise;
    expect(written).not.toHaveBeenCalled();
    for (const end of [client, socket]) end.destroy();
    server.close();
  });

  test("what is written later does not count as taken", () => {
    const { connect, request } = guarded({ writeMs: 1000 });
    const socket = connect();
    const { response } = request(socket);
    for (let i = 0; i < 4 && !socket.destroyed; i++) {
      response.write(10);
      vi.advanceTimersByTime(300);
    }
    expect(socket.destroyed).toBe(true);
  });

  test("a stream from which everything was taken may be silent", () => {
    const { connections, connect, request } = guarded({ writeMs: 1000 });
    const socket = connect();
    const { response } = request(socket);
    response.write(10);
    response.writableLength = 0; // too little to be told by "drain"
    vi.advanceTimersByTime(100_000);
    expect(socket.destroyed).toBe(false);
    expect(connections.waiting()).toBe(0);
  });

  test("are bounded in all: the connection with the most is given up", () => {
    const { connections, connect, request } = guarded({ waitingBytes: 100 });
    const [small, large, last] = [connect(), connect("192.0.2.2"), connect()];
    request(small).response.end(30);
    request(large).response.end(30);
    request(large).response.end(30);
    request(last).response.end(20);
    expect([small, large, last].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    expect(connections.waiting()).toBe(50);
  });

  test("of a connection that is closed, or of requests that are over, wait no longer", () => {
    const { connections, connect, request } = guarded({ writeMs: 1000 });
    const [closed, open] = [connect(), connect()];
    request(closed).response.end(30);
    const { response } = request(open);
    response.end(30);
    closed.destroy();
    expect(connections.waiting()).toBe(30);
    response.close();
    expect(connections.waiting()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
