/** Bounds the memory that strangers' requests take, from their first byte until nothing is kept of them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";

/** The message to a client whose request is refused for lack of memory or of room. */
export const TOO_MANY_UNDER_WAY = "There are too many requests under way. Nothing was done. Try again in a second.";

/** One connection, as the sender of requests. */
export interface Sender {
  readonly address: string;
  /** Closes the connection and gives up its requests. */
  giveUp(why: string): void;
}

export interface RequestMemory {
  /**
   * Counts a request, with its header fields and the work for it, until its response is closed and that work is done.
   * Refuses it (`isRefused`) if it exceeds the share of its address.
   */
  hold(sender: Sender, request: IncomingMessage, response: ServerResponse): void;
  /** To be called when a connection is closed. Its requests count until they are released. */
  forget(sender: Sender): void;
  /** Bytes that are held now. */
  held(): number;
}

// Measured with Node 26, on the heap and outside it, and rounded up.
/** A request without any work: its stream or its parser's objects, and its response. */
export const REQUEST_BYTES = 16 * 1024;
/** What a protocol and a handler allocate to answer it. */
export const WORK_BYTES = 48 * 1024;
/** A header field, besides its text. */
export const FIELD_BYTES = 512;
/** A piece of a body, besides its bytes. Each frame or chunk is a piece, even one of a single byte. */
export const PIECE_BYTES = 512;
/** Text and bytes exist twice, as received and as used. */
const COPIES = 2;

/** A plain record without closures, for there is one per open stream. */
interface Hold {
  readonly account: Account;
  readonly memory: Memory;
  readonly isRefused: boolean;
  bytes: number;
  isOpen: boolean;
  works: number;
}

/** What one connection holds. */
interface Account {
  readonly sender: Sender;
  readonly share: Share;
  bytes: number;
  /** It was closed for its memory, which is free once all work for its requests has stopped. */
  isGoing: boolean;
  isForgotten: boolean;
}

/** What the connections of one address hold. */
interface Share {
  bytes: number;
  /** Of these, bytes of connections that were closed for their memory. */
  going: number;
  readonly accounts: Set<Account>;
}

interface Memory {
  add(hold: Hold, bytes: number): void;
  /** Stops counting a request that is neither open nor worked on. */
  release(hold: Hold): void;
}

// Stored on the request itself: a WeakMap cost a tenth of the time of a refusal, most of it in garbage collection.
const HOLD: unique symbol = Symbol("hold");
type Held = object & { [HOLD]?: Hold };
const holdOf = (request: Held): Hold | undefined => request[HOLD];
const ACCOUNT: unique symbol = Symbol("account");
type Known = Sender & { [ACCOUNT]?: Account };

/** Whether a request is refused, for there is no memory for its work. */
export const isRefused = (request: IncomingMessage): boolean => holdOf(request)?.isRefused === true;

/** Counts bytes that are allocated for a request, besides those received. */
export function growRequest(request: object, bytes: number): void {
  const hold = holdOf(request);
  if (hold?.isOpen) hold.memory.add(hold, bytes);
}

/** Stops counting a request here, for it is counted elsewhere. */
export function releaseRequest(request: object): void {
  const hold = holdOf(request);
  if (!hold) return;
  hold.works = 0;
  close(hold);
}

function close(hold: Hold): void {
  hold.isOpen = false;
  hold.memory.release(hold);
}

/** Counts the request's body as it arrives. */
export function countBody(request: IncomingMessage): void {
  if (!holdOf(request)) return;
  // On HTTP/2 pieces wait in the stream until the request is read; the first may be there when node emits the request.
  const { stream: body = request }: { readonly stream?: Readable } = request as object;
  const pieces = (body as { readonly readableBuffer?: ArrayLike<unknown> }).readableBuffer?.length ?? 0;
  if (pieces > 0) growRequest(request, COPIES * body.readableLength + PIECE_BYTES * pieces);
  const push = body.push;
  body.push = (piece: Uint8Array | null, encoding) => {
    if (piece) growRequest(request, COPIES * piece.length + PIECE_BYTES);
    else body.push = push;
    return push.call(body, piece, encoding);
  };
}

/** Counts a request for as long as work is done for it, even after its connection was closed. */
export function whileWorking(request: IncomingMessage, work: () => void | Promise<void>): void | Promise<void> {
  const hold = holdOf(request);
  if (!hold) return work();
  hold.works++;
  const end = () => {
    hold.works--;
    hold.memory.release(hold);
  };
  const done = work();
  if (done instanceof Promise) return done.then(end);
  end();
}

/**
 * Bounds the bytes of all requests together, and shares them out among addresses. An address may hold as much as it leaves
 * free, which is half while it is alone, and in any case an even part: a third for each of two, so that there is room for
 * one more. A request beyond that is refused, which costs little until its client has noticed. If an address still comes to
 * hold more than twice what is free, by bodies that grow, by refused requests that stay open, or because others have come,
 * the address with the most loses its connection with the most.
 */
export function limitRequestMemory(maxBytes: number): RequestMemory {
  const shares = new Map<string, Share>();
  const all = { bytes: 0, going: 0 };
  /** Addresses that hold something. */
  let holding = 0;

  function accountOf(sender: Known): Account {
    const known = sender[ACCOUNT];
    if (known) return known;
    const share = shares.get(sender.address) ?? { bytes: 0, going: 0, accounts: new Set() };
    shares.set(sender.address, share);
    const account = { sender, share, bytes: 0, isGoing: false, isForgotten: false };
    share.accounts.add(account);
    sender[ACCOUNT] = account;
    return account;
  }

  function hold(sender: Sender, request: IncomingMessage, response: ServerResponse): void {
    const account = accountOf(sender);
    const { share } = account;
    const bytes = bytesOf(request);
    const withWork = bytes + WORK_BYTES;
    const addresses = holding + (share.bytes === 0 ? 1 : 0);
    const [free, evenPart] = [maxBytes - all.bytes - withWork, maxBytes / (addresses + 1)];
    const isRefused = share.bytes + withWork > Math.max(free, evenPart);
    const own: Hold = { account, memory, isRefused, bytes: 0, isOpen: true, works: 0 };
    (request as Held)[HOLD] = own;
    response.on("close", () => close(own));
    add(own, isRefused ? bytes : withWork);
  }

  function add(hold: Hold, bytes: number): void {
    const { account } = hold;
    const { share, isGoing } = account;
    if (share.bytes === 0) holding++;
    hold.bytes += bytes;
    account.bytes += bytes;
    share.bytes += bytes;
    all.bytes += bytes;
    if (share.bytes === 0) holding--;
    if (isGoing) {
      share.going += bytes;
      all.going += bytes;
    } else if (staying(share) > 2 * (maxBytes - staying(all))) giveUpLargest();
  }

  function release(hold: Hold): void {
    const { isOpen, works, account } = hold;
    if (isOpen || works > 0) return;
    add(hold, -hold.bytes);
    drop(account);
  }
  const memory: Memory = { add, release };

  function forget(sender: Known): void {
    const account = sender[ACCOUNT];
    if (!account) return;
    account.isForgotten = true;
    drop(account);
  }

  function drop(account: Account): void {
    const { share, sender } = account;
    if (!account.isForgotten || account.bytes > 0) return;
    share.accounts.delete(account);
    if (share.accounts.size === 0 && shares.get(sender.address) === share) shares.delete(sender.address);
  }

  function giveUpLargest(): void {
    const share = largest(shares.values(), staying);
    const account = largest(share.accounts, (one) => (one.isGoing ? 0 : one.bytes));
    account.isGoing = true;
    share.going += account.bytes;
    all.going += account.bytes;
    account.sender.giveUp("its requests take too much memory");
  }

  return { hold, forget, held: () => all.bytes };
}

const staying = ({ bytes, going }: Pick<Share, "bytes" | "going">): number => bytes - going;

function largest<T>(items: Iterable<T>, sizeOf: (item: T) => number): T {
  return [...items].reduce((a, b) => (sizeOf(b) > sizeOf(a) ? b : a));
}

function bytesOf({ rawHeaders }: IncomingMessage): number {
  const text = rawHeaders.reduce((sum, { length }) => sum + length, 0);
  return REQUEST_BYTES + COPIES * text + (FIELD_BYTES * rawHeaders.length) / 2;
}
