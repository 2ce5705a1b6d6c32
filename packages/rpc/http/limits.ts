/** What a port allows, and what it allows by default. Nothing is loaded for it. */
import type { ConnectionLimits } from "./connections.ts";
import type { SessionLimits } from "./sessions.ts";
import type { UnreadLimits } from "./unread.ts";

export interface OnePortLimits extends ConnectionLimits, UnreadLimits, SessionLimits {
  /** Time for a connection to send the bytes that tell its protocol, or for its TLS handshake. */
  readonly sniffMs: number;
  /** Time for a request to arrive completely. */
  readonly requestMs: number;
  /** Time that an HTTP/1.1 connection is kept without a request. */
  readonly keptMs: number;
  /** All header fields of one request together. */
  readonly headerBytes: number;
  /** Bytes of a body that are counted when its length is announced; a longer one counts as it is read. */
  readonly bodyBytes: number;
  /** Bytes that strangers' requests may take in all, until they are answered; see `holdRequest`. */
  readonly requestBytes: number;
  /** Requests at a time on one HTTP/2 connection of a stranger. */
  readonly concurrentStreams: number;
  /** The same for a peer, which uses one connection and may have many calls in flight. */
  readonly peerStreams: number;
}

/** Largest message of any RPC, in either direction and also after decompression. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

export const defaultLimits: OnePortLimits = {
  connections: 1000,
  connectionsPerAddress: 500,
  requestBytes: 64 * 1024 * 1024,
  writeMs: 30_000,
  waitingBytes: 64 * 1024 * 1024,
  sniffMs: 10_000,
  requestMs: 30_000,
  keptMs: 72_000,
  idleMs: 600_000,
  keepAliveMs: 15_000,
  headerBytes: 16 * 1024,
  bodyBytes: 64 * 1024,
  concurrentStreams: 100,
  peerStreams: 1000,
};
