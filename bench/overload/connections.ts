/** A minimal HTTP/1.1 client: the generator is to leave as much of the machine as possible to what is measured. */
import { connect, type Socket } from "node:net";
import type { Request } from "../load/workloads.ts";

/** Gets the status of an answer, or 0 if the connection ended instead. */
export type Answered = (status: number, body: Buffer) => void;

/** Answers are small, and their header section comes in one piece. */
const STATUS_AT = "HTTP/1.1 ".length;
const EMPTY_LINE = "\r\n\r\n";
const NOTHING = Buffer.alloc(0);

interface Connection {
  readonly socket: Socket;
  answered: Answered | undefined;
  read: Buffer;
}

/**
 * A pool that keeps its connections open. It has as many as were ever needed at once, but at most `most`; further requests
 * wait for one.
 */
export function createConnections(base: URL, most: number) {
  const idle: Connection[] = [];
  // A set keeps its order and removes its first element at no cost at any length; an array does not.
  const waiting = new Set<{ readonly bytes: Buffer; readonly answered: Answered }>();
  let open = 0;

  function nextWaiting() {
    const [next] = waiting;
    if (next) waiting.delete(next);
    return next;
  }

  function add(): Connection {
    open++;
    const socket = connect(Number(base.port), base.hostname).setNoDelay(true);
    const connection: Connection = { socket, answered: undefined, read: NOTHING };
    socket.on("data", (chunk: Buffer) => read(connection, chunk));
    socket.on("error", () => {});
    socket.once("close", () => {
      open--;
      const { answered } = connection;
      connection.answered = undefined;
      if (answered) answered(0, NOTHING);
      else if (idle.includes(connection)) idle.splice(idle.indexOf(connection), 1);
      const next = nextWaiting();
      if (next) send(next.bytes, next.answered);
    });
    return connection;
  }

  function read(connection: Connection, chunk: Buffer): void {
    const bytes = connection.read.length === 0 ? chunk : Buffer.concat([connection.read, chunk]);
    const end = bytes.indexOf(EMPTY_LINE);
    const head = bytes.toString("latin1", 0, Math.max(0, end));
    const body = end + EMPTY_LINE.length;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (end < 0 || bytes.length < body + length) {
      connection.read = bytes;
      return;
    }
    connection.read = NOTHING;
    const { answered } = connection;
    connection.answered = undefined;
    const next = nextWaiting();
    if (next) write(connection, next.bytes, next.answered);
    else idle.push(connection);
    answered?.(Number(head.slice(STATUS_AT, STATUS_AT + 3)), bytes.subarray(body));
  }

  function write(connection: Connection, bytes: Buffer, answered: Answered): void {
    connection.answered = answered;
    connection.socket.write(bytes);
  }

  function send(bytes: Buffer, answered: Answered): void {
    const connection = idle.pop() ?? (open < most ? add() : undefined);
    if (connection) write(connection, bytes, answered);
    else waiting.add({ bytes, answered });
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
