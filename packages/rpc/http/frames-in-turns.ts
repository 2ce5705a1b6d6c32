/** How HTTP/2 connections take turns, so that none of them makes the others wait for what it has sent. */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { callerNetwork } from "./caller-network.ts";
import { countDataBytes } from "./data-bytes.ts";
import type { Turns } from "./turns.ts";

const NOTHING = Buffer.alloc(0);

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
  begin(request: () => void): void;
  /** It takes no turns any more: from now on it is given what it has sent at once. */
  trust(): void;
  /** Bytes of answers that the system has taken, without what the protocol itself needs. */
  dataTaken(): number;
}

/**
 * Lets a connection take turns with the others, address by address: in its turn it is given a few frames of what has
 * arrived, begins a request, or ends. While some requests wait for their turn it is given no more: the rest waits as bytes, with
 * the client in the end.
 *
 * Without it node parses all that one read of the socket has brought, up to 2 MB, and makes an object of JavaScript for each
 * stream in it, also for the thousand that were reset at once.
 */
export const framesInTurns = (socket: Socket, turns: Turns): FramesInTurns => new SlicedSocket(socket, turns);

/** A class, whose methods are shared: there may be a thousand connections that do nothing. */
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

  /** The same function each time, so that it waits for one turn at a time. */
  readonly #step = (): void => {
    if (this.socket.destroyed || !this.#isWanted) return;
    if (this.#waiting >= WAITING_REQUESTS && !this.#isTrusted) return;
    if (this.#rest.length === 0) this.#rest = this.socket.read() ?? NOTHING;
    const rest = this.#rest;
    if (rest.length === 0) return;
    const end = this.#isTrusted ? rest.length : this.#endOfSlice(rest);
    this.#rest = end < rest.length ? rest.subarray(end) : NOTHING; // what was given is not kept
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

  // Each frame of node's is two parts, and each part would be a write of its own to the socket.
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
