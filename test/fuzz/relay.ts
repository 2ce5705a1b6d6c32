/** Puts TLS around what targets send, without their knowing: a port of this process in front of one that takes TLS alone. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect } from "node:tls";

export interface Relay extends Disposable {
  readonly port: number;
}

/** What HTTP/2 begins with, and nothing else: ALPN has to agree on it before it is said. */
const isHttp2 = (first: Buffer) => "PRI".startsWith(first.toString("latin1", 0, 3));

/** Bytes, ends and breaks are passed on in both directions, on a connection of their own for each. */
export async function relayTo(port: number, ca: string): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => {}).once("close", () => open.delete(socket));
    socket.once("data", (first: Buffer) => {
      socket.pause();
      const ALPNProtocols = [isHttp2(first) ? "h2" : "http/1.1"];
      const secured = connect({ port, host: "127.0.0.1", ca, ALPNProtocols });
      secured.on("error", () => socket.resetAndDestroy());
      secured.write(first);
      socket.pipe(secured).pipe(socket);
      socket.once("close", () => secured.destroy());
      // What comes still is read, or it would never end.
      secured.once("close", () => socket.resume().end());
    });
    socket.once("end", () => socket.bytesRead === 0 && socket.end());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
