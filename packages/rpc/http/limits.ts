/** What a port and its streams are allowed, also by default; times in milliseconds. Nothing is loaded for it. */

export interface OnePortLimits {
  /** Connections at a time, without those of strangers that carry a stream. */
  readonly connections: number;
  /** Of these, strangers' connections from one address, see `callerNetwork`. Undefined for no limit. */
  readonly connectionsPerAddress: number | undefined;
  /** Time for a connection to send the bytes that tell its protocol, or for its TLS handshake. */
  readonly sniffMs: number;
  /** Time for a request to arrive completely. */
  readonly requestMs: number;
  /** Time that an HTTP/1.1 connection is kept without a request. */
  readonly keptMs: number;
  /** An HTTP/2 connection is closed after this time without traffic, unless it waits for responses. */
  readonly idleMs: number;
  /** Interval of the pings to a client of HTTP/2 that waits for responses. */
  readonly keepAliveMs: number;
  /** Time within which a client must take some of the bytes that wait for it. */
  readonly writeMs: number;
  /** Bytes that may wait in memory, for the answers of all strangers together. */
  readonly waitingBytes: number;
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

/** Of open streams. They last, so the limits for short calls do not bound them. */
export interface StreamLimits {
  /** Streams of one process. */
  readonly streams: number;
  /** Streams of one caller. */
  readonly streamsPerCaller: number;
}

export const defaultStreamLimits: StreamLimits = { streams: 1_000, streamsPerCaller: 20 };
