/** How many connections there may be, and which one gives way. */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { type Connection, createConnections } from "./connections.ts";

function guarded(limits: { connections?: number; connectionsPerAddress?: number | undefined }) {
  const connections = createConnections({
    connections: 100,
    connectionsPerAddress: undefined,
    peerStreams: 1,
    ...limits,
  });
  let ports = 1000;
  function connect(remoteAddress = "192.0.2.1") {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: ports++,
      isOpen: true,
      setKeepAlive: vi.fn(),
      destroy() {
        socket.isOpen = false;
        socket.emit("close");
      },
    });
    if (!connections.admit(socket as unknown as Socket)) socket.isOpen = false;
    return socket;
  }
  const begin = (socket: ReturnType<typeof connect>) =>
    connections.begin({ socket } as unknown as IncomingMessage, {} as ServerResponse) as Connection;
  return { ...connections, connect, begin };
}
const open = (sockets: readonly { readonly isOpen: boolean }[]) => sockets.map(({ isOpen }) => isOpen);

describe("their number", () => {
  test("is bounded in all, whatever the addresses, and the one that has rested longest gives way", () => {
    const { connect, begin, answered } = guarded({ connections: 3 });
    const sockets = [connect("192.0.2.1"), connect("192.0.2.2"), connect("192.0.2.3")] as const;
    answered(begin(sockets[0]));
    const [fourth, fifth] = [connect("192.0.2.4"), connect("192.0.2.5")];
    expect(open([...sockets, fourth, fifth])).toEqual([true, false, false, true, true]);
  });

  test("closes the new one while all others are busy", () => {
    const { connect, begin } = guarded({ connections: 2 });
    const sockets = [connect(), connect()];
    for (const socket of sockets) begin(socket);
    expect(open([...sockets, connect()])).toEqual([true, true, false]);
  });

  test("is bounded for each address: one leaves the others alone", () => {
    const { connect, begin } = guarded({ connectionsPerAddress: 2 });
    const greedy = [connect("192.0.2.1"), connect("192.0.2.1")];
    for (const socket of greedy) begin(socket);
    expect(connect("192.0.2.1").isOpen).toBe(false);
    expect(open([connect("192.0.2.2"), connect("::ffff:192.0.2.2")])).toEqual([true, true]);
  });

  test("of IPv6 counts by network", () => {
    const { connect, begin } = guarded({ connectionsPerAddress: 1 });
    begin(connect("2001:db8:0:1::1"));
    expect(open([connect("2001:db8:0:1::2"), connect("2001:db8:0:2::1")])).toEqual([false, true]);
  });

  test("is given back by each that closes, and not counted for the system's own processes", () => {
    const { connect, begin, trust } = guarded({ connectionsPerAddress: 2 });
    trust(begin(connect()));
    const [first, second] = [connect(), connect()];
    for (const socket of [first, second]) begin(socket);
    expect(connect().isOpen).toBe(false);
    first.destroy();
    expect(open([connect(), second])).toEqual([true, true]);
  });
});

describe("streams", () => {
  test("take no place from connections, until the last one of theirs ends", () => {
    const { connect, begin } = guarded({ connections: 1 });
    const streaming = begin(connect());
    const ends = [streaming.beginStream(), streaming.beginStream()];
    const busy = connect();
    begin(busy);
    ends[0]?.();
    expect(busy.isOpen).toBe(true);
    expect(connect().isOpen).toBe(false);
    busy.destroy();
    ends[1]?.();
    expect(connect().isOpen).toBe(false);
  });

  test("that end after their connection count nothing twice", () => {
    const { connect, begin } = guarded({ connections: 1, connectionsPerAddress: 1 });
    for (let i = 0; i < 3; i++) {
      const socket = connect();
      const end = begin(socket).beginStream();
      socket.destroy();
      end();
    }
    const last = connect();
    begin(last);
    expect(open([last, connect()])).toEqual([true, false]);
  });
});
