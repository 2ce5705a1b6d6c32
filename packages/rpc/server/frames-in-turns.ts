/** How HTTP/2 connections take turns, so that none of them makes the others wait for what it has sent. */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { callerNetwork } from "./caller-network.ts";
import type { Turns } from "./turns.ts";

/** Whole frames that node's parser is given at a time: the smallest request and its reset are two. */
export const FRAMES_PER_SLICE = 8;

/** Bytes at a time, of which large frames need fewer turns than they have frames. */
export const SLICE_BYTES = 16 * 1024;

/** Requests of one connection that wait for their turn, and with which nothing more is read. */
export const WAITING_REQUESTS = 8;

/** What the end of a connection counts for: all that runs for it is called off. */
export const WORK_OF_CLOSING = 16;

/** A connection that takes turns with others. */
export interface FramesInTurns {
  /** Stands for the socket, and gives what the socket has read in slices. */
  readonly stream: Duplex;
  readonly socket: Socket;
  /** Does what a request of this connection asks for when it is its turn. */
  begin<T>(request: () => T | Promise<T>): Promise<T>;
  /** It takes no turns any more: from now on it is given what it has sent at once. */
  trust(): void;
}

/**
 * Lets a connection take turns with the others, address by address: in its turn it is given a few frames of what has
 * arrived, begins a request, or ends. While some requests wait for their turn it is given no more: the rest waits as bytes, with
 * the client in the end.
 *
 * Without it node parses all that one read of the socket has brought, up to 2 MB, and makes an object of JavaScript for each
 * stream in it, also for the thousand that were reset at once.
 */
export function framesInTurns(socket: Socket, turns: Turns): FramesInTurns {
  const caller = callerNetwork(socket.remoteAddress);
  const endOfSlice = createSlicing();
  let rest: Buffer = Buffer.alloc(0);
  let isWanted = false;
  let isTrusted = false;
  let waiting = 0;

  const queue = () => {
    if (isWanted && waiting < WAITING_REQUESTS) turns(caller, step);
  };
  function step(): void {
    if (socket.destroyed || !isWanted || (waiting >= WAITING_REQUESTS && !isTrusted)) return; // or nobody waits for it
    if (rest.length === 0) rest = socket.read() ?? rest;
    if (rest.length === 0) return;
    const end = isTrusted ? rest.length : endOfSlice(rest);
    const slice = rest.subarray(0, end);
    rest = rest.subarray(end);
    isWanted = stream.push(slice);
    queue();
  }
  const read = () => (isTrusted ? step() : queue());

  const stream = new Duplex({
    read() {
      isWanted = true;
      read();
    },
    write: (chunk, encoding, done) => void socket.write(chunk, encoding, done),
    // Each frame of node's is two parts, and each part would be a write of its own to the socket.
    writev: (parts, done) => void socket.write(Buffer.concat(parts.map(({ chunk }) => chunk as Buffer)), done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on("readable", read);
  const close = () => {
    stream.destroy();
    return WORK_OF_CLOSING;
  };
  socket.once("close", () => turns(caller, close));

  return {
    stream,
    socket,
    async begin(request) {
      waiting++;
      await new Promise<void>((resolve) => turns(caller, resolve));
      if (waiting-- === WAITING_REQUESTS) read();
      return request();
    },
    trust() {
      isTrusted = true;
      read();
    },
  };
}

/** The preface, before the first frame (RFC 9113, 3.4). */
const PREFACE_BYTES = 24;
/** What each frame begins with: the length of its payload in three bytes, and six more (RFC 9113, 4.1). */
const FRAME_HEAD_BYTES = 9;
const LENGTH_BYTES = 3;

/** Follows the frames of one connection. Gives where in what comes next a slice ends, at its first byte or later. */
export function createSlicing(): (bytes: Buffer) => number {
  /** Bytes of the frame that has begun which are still to come. */
  let payload = PREFACE_BYTES;
  /** The same of its head, and the length that was read of it. */
  let head = 0;
  let length = 0;
  return (bytes) => {
    const most = Math.min(bytes.length, SLICE_BYTES);
    let at = 0;
    for (let frames = 0; at < most; ) {
      if (head === 0 && payload === 0) {
        if (frames++ === FRAMES_PER_SLICE) break;
        [head, length] = [FRAME_HEAD_BYTES, 0];
      }
      if (head > 0) {
        if (head > FRAME_HEAD_BYTES - LENGTH_BYTES) length = 256 * length + (bytes[at] ?? 0);
        at++;
        if (--head === 0) payload = length;
      } else {
        const skipped = Math.min(payload, most - at);
        at += skipped;
        payload -= skipped;
      }
    }
    return at;
  };
}
