/** The messages of a link as bytes: gRPC's frames, each one byte of flags, four bytes of length, and a message. */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { MAX_MESSAGE_BYTES, PREFIX_BYTES } from "../server/message-limit.ts";

/** Largest message of a link: one call or answer of the largest size that an RPC may have, and 64 KiB for what surrounds it. */
export const MAX_FRAME_BYTES = MAX_MESSAGE_BYTES + 64 * 1024;

/** The other side has violated the protocol of links. Nothing that it sends afterwards can be trusted. */
export class LinkViolation extends Error {
  override readonly name = "LinkViolation";
}

export const toFrame = <D extends DescMessage>(desc: D, message: MessageInitShape<D>): Buffer =>
  Buffer.from(encodeEnvelope(0, toBinary(desc, create(desc, message))).buffer);

export interface FrameReader {
  /** Takes what has arrived, and hands on the messages that are complete. Throws LinkViolation. */
  read(chunk: Buffer): void;
  /** Whether a message has begun to arrive and is not complete. */
  isWithinFrame(): boolean;
}

/** Reads messages from bytes, however they are cut into chunks. A message in many chunks is copied once. */
export function readFrames<D extends DescMessage>(desc: D, take: (message: MessageShape<D>) => void): FrameReader {
  let parts: Buffer[] = [];
  let held = 0;
  /** Bytes needed before more can be decoded. */
  let needed = PREFIX_BYTES;

  function read(chunk: Buffer): void {
    parts.push(chunk);
    held += chunk.length;
    if (held < needed) return;
    const bytes = parts.length === 1 ? chunk : Buffer.concat(parts, held);
    let at = 0;
    for (;;) {
      const left = bytes.length - at;
      needed = left < PREFIX_BYTES ? PREFIX_BYTES : PREFIX_BYTES + lengthAt(bytes, at);
      if (left < needed) break;
      // A new view, because a part of a Buffer is a Buffer, and a message holds plain Uint8Arrays.
      const payload = new Uint8Array(bytes.buffer, bytes.byteOffset + at + PREFIX_BYTES, needed - PREFIX_BYTES);
      const message = decode(desc, payload);
      at += needed;
      take(message);
    }
    held = bytes.length - at;
    parts = held > 0 ? [bytes.subarray(at)] : [];
  }
  return { read, isWithinFrame: () => held > 0 };
}

function lengthAt(bytes: Buffer, at: number): number {
  if (bytes[at] !== 0) throw new LinkViolation(`a frame has the flags ${bytes[at]}: links are not compressed`);
  const length = bytes.readUInt32BE(at + 1);
  if (length > MAX_FRAME_BYTES)
    throw new LinkViolation(`a frame says that it has ${length} bytes, more than ${MAX_FRAME_BYTES}`);
  return length;
}

function decode<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(desc, bytes);
  } catch (cause) {
    throw new LinkViolation(`a frame holds no ${desc.name}`, { cause });
  }
}
