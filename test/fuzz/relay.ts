/** Wraps the connections of targets in TLS without their knowledge: a port of this process in front of a port for TLS alone. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect } from "node:tls";

export interface Relay extends Disposable {
  readonly port: number;
}

/** How a connection of HTTP/2 begins, and none of another protocol does: ALPN has to be negotiated before the first byte. */
const PREFACE = "PRI";

/** Passes bytes, ends and resets on in both directions, with one connection to the port for each. */
export async function relayTo(port: number, ca: string): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => {}).once("close", () => open.delete(socket));
    let first = Buffer.alloc(0);
    function begin(): void {
      socket.off("data", collect).off("end", begin).pause();
      if (first.length === 0) return void socket.end();
      const ALPNProtocols = [first.toString("latin1", 0, PREFACE.length) === PREFACE ? "h2" : "http/1.1"];
      const secured = connect({ port, host: "127.0.0.1", ca, ALPNProtocols });
      secured.on("error", () => socket.resetAndDestroy());
      secured.write(first);
      socket.pipe(secured).pipe(socket);
      socket.once("close", () => secured.destroy());
      // Reads the rest; without that the socket would never end.
      secured.once("close", () => socket.resume().end());
    }
    function collect(chunk: Buffer): void {
      first = Buffer.concat([first, chunk]);
      // "P" alone may be that of POST.
      if (first.length >= PREFACE.length || !PREFACE.startsWith(first.toString("latin1"))) begin();
    }
    socket.on("data", collect).on("end", begin);
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
