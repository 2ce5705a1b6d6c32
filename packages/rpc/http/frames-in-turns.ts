/** Lets HTTP/2 connections take turns, so that what one of them has sent does not hold up the others. */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { callerNetwork } from "./caller-network.ts";
import { countDataBytes, FRAME_HEAD_BYTES, LENGTH_BYTES } from "./data-bytes.ts";
import type { Turns } from "./turns.ts";

const NOTHING = Buffer.alloc(0);

/** Frames that node's parser is given at a time. The smallest request and its reset are two. */
export const FRAMES_PER_SLICE = 8;

/** Bytes that node's parser is given at a time, at most: with large frames a slice has fewer of them. */
export const SLICE_BYTES = 16 * 1024;

/** Requests of one connection that may wait for their turn. While there are as many, nothing more is read. */
export const WAITING_REQUESTS = 8;

/** How many pieces of work the end of a connection counts as: everything that runs for it is cancelled. */
export const WORK_OF_CLOSING = 16;

/** A connection that takes turns with others. */
export interface FramesInTurns {
  /** Stands in for the socket, and delivers in slices what the socket has read. */
  readonly stream: Duplex;
  readonly socket: Socket;
  /** Begins a request of this connection when its turn comes. */
  begin(request: () => void): void;
  /** Ends the turns: from now on what arrives is delivered at once. */
  trust(): void;
  /** Bytes of responses that the kernel has taken, without frames that the protocol itself needs. */
  dataTaken(): number;
}

/**
 * Lets a connection take turns with the others, address by address. In its turn it gets a few frames of what has arrived,
 * begins a request, or ends. While `WAITING_REQUESTS` requests wait for their turn it gets no more: the rest waits as bytes,
 * and TCP flow control makes the client wait in the end.
 *
 * Otherwise node parses everything that one read of the socket has brought, up to 2 MB, and creates a JavaScript object for
 * each stream in it, even for a thousand that were reset at once.
 */
export const framesInTurns = (socket: Socket, turns: Turns): FramesInTurns => new SlicedSocket(socket, turns);

/** A class, so that connections share its methods: a thousand of them may be idle. */
class SlicedSocket extends Duplex implements FramesInTurns {
  readonly stream = this;
  readonly socket: Socket;
  readonly #turns: Turns;
  readonly #caller: string;
  readonly #endOfSlice = createSlicing();
  #rest: Buffer = NOTHING;
  #isWanted = false;
  #isTrusted = false;
  #waiting = 0;
  readonly #dataBytes = countDataBytes();
  #dataTaken = 0;

  constructor(socket: Socket, turns: Turns) {
    super();
    this.socket = socket;
    this.#turns = turns;
    this.#caller = callerNetwork(socket.remoteAddress);
    socket.on("readable", () => this.#readOn());
    socket.on("close", () => turns(this.#caller, () => this.destroy() && WORK_OF_CLOSING));
  }

  begin(request: () => void): void {
    this.#waiting++;
    this.#turns(this.#caller, () => {
      if (this.#waiting-- === WAITING_REQUESTS) this.#readOn();
      request();
    });
  }

  dataTaken(): number {
    return this.#dataTaken;
  }

  trust(): void {
    this.#isTrusted = true;
    this.#readOn();
  }

  #readOn(): void {
    if (this.#isTrusted) this.#step();
    else this.#queue();
  }

  #queue(): void {
    if (this.#isWanted && this.#waiting < WAITING_REQUESTS) this.#turns(this.#caller, this.#step);
  }

  /** The same function each time, so that at most one step waits for a turn. */
  readonly #step = (): void => {
    if (this.socket.destroyed || !this.#isWanted) return;
    if (this.#waiting >= WAITING_REQUESTS && !this.#isTrusted) return;
    if (this.#rest.length === 0) this.#rest = this.socket.read() ?? NOTHING;
    const rest = this.#rest;
    if (rest.length === 0) return;
    const end = this.#isTrusted ? rest.length : this.#endOfSlice(rest);
    this.#rest = end < rest.length ? rest.subarray(end) : NOTHING; // keeps no reference to what was passed on
    this.#isWanted = this.push(rest.subarray(0, end));
    this.#queue();
  };

  override _read(): void {
    this.#isWanted = true;
    this.#readOn();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#send(chunk, done);
  }

  // Node writes each frame in two parts, and each part would be a write of its own to the socket.
  override _writev(parts: { readonly chunk: Buffer }[], done: Done): void {
    this.#send(Buffer.concat(parts.map(({ chunk }) => chunk)), done);
  }

  #send(bytes: Buffer, done: Done): void {
    const data = this.#dataBytes(bytes);
    this.socket.write(bytes, (error) => {
      this.#dataTaken += data;
      done(error);
    });
  }

  override _final(done: Done): void {
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.socket.destroy();
    done(error);
  }
}

type Done = (error?: Error | null) => void;

/** The preface, before the first frame (RFC 9113, 3.4). */
const PREFACE_BYTES = 24;

/** Follows the frames of one connection. The function takes the next bytes and returns the end of a slice, 1 or more. */
export function createSlicing(): (bytes: Buffer) => number {
  /** Payload bytes of the current frame that are still to come. */
  let payload = PREFACE_BYTES;
  /** Header bytes of it that are still to come, and the payload length read so far. */
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
