/** What the requests of strangers take of a process' memory. */
import type { IncomingMessage, ServerResponse } from "node:http";

/** Whoever sends requests: one connection. */
interface Sender {
  destroy(): void;
}

export interface RequestMemory {
  /** Counts a request until it is answered: its header fields, and of its body what has come. */
  hold(sender: Sender, request: IncomingMessage, response: ServerResponse): void;
  /** Bytes that are held now. */
  held(): number;
}

/** What a request without a body and header fields takes, roughly. */
const REQUEST_BYTES = 4096;

/**
 * Bounds the bytes of all requests that are not answered. On HTTP/2 one connection has many at a time, each with a body that
 * may never end. When more than `maxBytes` are held, the connection with the most of them is closed.
 */
export function limitRequestMemory(maxBytes: number): RequestMemory {
  const shares = new Map<Sender, { bytes: number; requests: number }>();
  let total = 0;

  function hold(sender: Sender, request: IncomingMessage, response: ServerResponse): void {
    const share = shares.get(sender) ?? { bytes: 0, requests: 0 };
    shares.set(sender, share);
    share.requests++;
    let own = 0;
    const add = (bytes: number) => {
      if (shares.get(sender) !== share) return; // it was closed
      own += bytes;
      share.bytes += bytes;
      total += bytes;
      if (total > maxBytes) closeLargest();
    };
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      add(-own);
      if (--share.requests === 0 && shares.get(sender) === share) shares.delete(sender);
    };
    const push = request.push;
    request.push = (chunk: Uint8Array | null, encoding) => {
      if (!released) add(chunk?.length ?? 0);
      return push.call(request, chunk, encoding);
    };
    response.once("finish", release).once("close", release);
    add(request.rawHeaders.reduce((sum, text) => sum + text.length, REQUEST_BYTES));
  }

  function closeLargest(): void {
    const [largest, { bytes }] = [...shares].reduce((a, b) => (b[1].bytes > a[1].bytes ? b : a));
    shares.delete(largest);
    total -= bytes;
    largest.destroy();
  }

  return { hold, held: () => total };
}
