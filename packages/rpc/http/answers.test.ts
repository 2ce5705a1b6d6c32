/** The limits of waiting answers, without a network: with fake sockets and responses. */
import { once } from "node:events";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { guarded } from "../fixtures/guarded.ts";
import { bytesTaken, countData } from "./connection.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

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
