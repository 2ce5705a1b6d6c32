/** As little of an HTTP/1.1 client as it takes: the generator's own work is to leave the machine to what is measured. */
import { connect, type Socket } from "node:net";
import type { Request } from "../load/workloads.ts";

/** What came back: the status, 0 where the connection ended instead. */
export type Answered = (status: number, body: string) => void;

/** An answer is small, and begins with its header section in one piece. */
const STATUS_AT = "HTTP/1.1 ".length;

interface Connection {
  readonly socket: Socket;
  answered: Answered | undefined;
  read: Buffer;
}

/** Keeps connections open, as many as were ever needed at once and `most` at most; a request beyond that waits for one. */
export function createConnections(base: URL, most: number) {
  const idle: Connection[] = [];
  const waiting: { readonly bytes: Buffer; readonly answered: Answered }[] = [];
  let open = 0;

  function add(): Connection {
    open++;
    const socket = connect(Number(base.port), base.hostname).setNoDelay(true);
    const connection: Connection = { socket, answered: undefined, read: Buffer.alloc(0) };
    socket.on("data", (chunk: Buffer) => read(connection, chunk));
    socket.on("error", () => {});
    socket.once("close", () => {
      open--;
      const { answered } = connection;
      connection.answered = undefined;
      if (answered) answered(0, "");
      else if (idle.includes(connection)) idle.splice(idle.indexOf(connection), 1);
      const next = waiting.shift();
      if (next) send(next.bytes, next.answered);
    });
    return connection;
  }

  function read(connection: Connection, chunk: Buffer): void {
    const bytes = connection.read.length === 0 ? chunk : Buffer.concat([connection.read, chunk]);
    const text = bytes.toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    const length = end < 0 ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
    if (end < 0 || bytes.length < end + 4 + length) {
      connection.read = bytes;
      return;
    }
    connection.read = Buffer.alloc(0);
    const { answered } = connection;
    connection.answered = undefined;
    const next = waiting.shift();
    if (next) write(connection, next.bytes, next.answered);
    else idle.push(connection);
    answered?.(Number(text.slice(STATUS_AT, STATUS_AT + 3)), text.slice(end + 4));
  }

  function write(connection: Connection, bytes: Buffer, answered: Answered): void {
    connection.answered = answered;
    connection.socket.write(bytes);
  }

  function send(bytes: Buffer, answered: Answered): void {
    const connection = idle.pop() ?? (open < most ? add() : undefined);
    if (connection) write(connection, bytes, answered);
    else waiting.push({ bytes, answered });
  }

  return {
    send,
    open: () => open,
    close() {
      for (const { socket } of idle) socket.destroy();
    },
  };
}

export function toBytes(
  { method, path, body }: Omit<Request, "method"> & { readonly method: string },
  host: string,
): Buffer {
  const fields =
    body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n${fields}\r\n${body ?? ""}`);
}
