/** The limits of a server's connections, without a network: with fake sockets and responses. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { guarded } from "../fixtures/guarded.ts";
import { countAsStream } from "./connections.ts";
import { isRefused } from "./request-memory.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

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
