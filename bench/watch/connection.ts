/**
 * A minimal gRPC client over HTTP/2 that only watches. It shares the cores with what is measured, and Node's own client would
 * take as much of them as the server. Its flow-control windows are opened once, wide enough for everything.
 */
import { connect } from "node:net";
import {
  END_HEADERS,
  END_STREAM,
  FrameType,
  frame,
  headers,
  PREFACE,
  settings,
} from "../../packages/rpc/fixtures/frames.ts";

export interface Watcher {
  /** Called with the bytes of each message; they are only valid until it returns. */
  told(message: Buffer): void;
  ended(): void;
}

const FRAME_HEAD = 9;
const ACK = 0x1;
const INITIAL_WINDOW_SIZE = 4;
const MAX_WINDOW = 2 ** 31 - 1;
const FIRST_WINDOW = 65_535;
/** One byte of flags and four of length. */
const MESSAGE_HEAD = 5;
/** A request message with no field set. */
const EMPTY_MESSAGE = Buffer.alloc(MESSAGE_HEAD);

function windowUpdate(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame({ type: FrameType.WINDOW_UPDATE, payload });
}

function request(stream: number, path: string, authority: string): Buffer[] {
  const fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", authority],
    ["content-type", "application/grpc+proto"],
    ["te", "trailers"],
  ] as const;
  return [
    headers(stream, fields, END_HEADERS),
    frame({ type: FrameType.DATA, flags: END_STREAM, stream, payload: EMPTY_MESSAGE }),
  ];
}

interface Place {
  readonly port: number;
  /** The address that it comes from. */
  readonly from: string;
  /** The path of the RPC, which is called with an empty message. */
  readonly path: string;
}

/** Opens a connection with one stream for each watcher. Returns a function that closes it; `closed` is called in any case. */
export function watchOver({ port, from, path }: Place, watchers: readonly Watcher[], closed: () => void): () => void {
  const host = "127.0.0.1";
  const socket = connect({ port, host, localAddress: from }).setNoDelay(true);
  socket.on("error", () => {});
  const own = settings([INITIAL_WINDOW_SIZE, MAX_WINDOW]);
  const opened = watchers.flatMap((_, i) => request(2 * i + 1, path, `${host}:${port}`));
  socket.write(Buffer.concat([PREFACE, own, windowUpdate(MAX_WINDOW - FIRST_WINDOW), ...opened]));

  const messages = watchers.map(({ told }) => messagesTo(told));
  const over = new Set<number>();
  const end = (index: number) => {
    if (over.has(index)) return;
    over.add(index);
    watchers[index]?.ended();
  };
  function received(type: number, flags: number, stream: number, payload: Buffer): void {
    const index = (stream - 1) / 2;
    if (type === FrameType.DATA) messages[index]?.(payload);
    else if (type === FrameType.RST_STREAM) end(index);
    else if ((type === FrameType.SETTINGS || type === FrameType.PING) && !(flags & ACK))
      socket.write(frame({ type, flags: ACK, payload: type === FrameType.PING ? payload : Buffer.alloc(0) }));
    if ((type === FrameType.DATA || type === FrameType.HEADERS) && flags & END_STREAM) end(index);
  }
  socket.on(
    "data",
    inPieces(
      FRAME_HEAD,
      (bytes, at) => FRAME_HEAD + bytes.readUIntBE(at, 3),
      (one) => received(one.readUInt8(3), one.readUInt8(4), one.readUInt32BE(5), one.subarray(FRAME_HEAD)),
    ),
  );
  socket.once("close", () => {
    for (const i of watchers.keys()) end(i);
    closed();
  });
  return () => socket.destroy();
}

const messagesTo = (told: (message: Buffer) => void) =>
  inPieces(
    MESSAGE_HEAD,
    (bytes, at) => MESSAGE_HEAD + bytes.readUInt32BE(at + 1),
    (message) => told(message.subarray(MESSAGE_HEAD)),
  );

/** Splits a stream of bytes into pieces, whose first `head` bytes give their length. */
export function inPieces(
  head: number,
  lengthOf: (bytes: Buffer, at: number) => number,
  take: (piece: Buffer) => void,
): (chunk: Buffer) => void {
  let rest: Buffer | undefined;
  return (chunk) => {
    const bytes = rest ? Buffer.concat([rest, chunk]) : chunk;
    let at = 0;
    while (bytes.length - at >= head) {
      const end = at + lengthOf(bytes, at);
      if (end > bytes.length) break;
      take(bytes.subarray(at, end));
      at = end;
    }
    rest = at < bytes.length ? bytes.subarray(at) : undefined;
  };
}
