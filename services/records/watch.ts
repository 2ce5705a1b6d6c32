/**
 * Watching records: first, if asked for, a snapshot of the existing records, as a list shows them; then each change. The
 * position in the changes is taken before the snapshot is read, so that nothing is missed in between; a change made
 * meanwhile may appear in both. Changes are read from what the store keeps for all readers, so no writer waits for a
 * watch, and a watch that is too slow is ended.
 */

import { createHash } from "node:crypto";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { CallContext } from "@petstore/rpc/call";
import type { StreamingCall } from "@petstore/rpc/server/handlers";
import { type Change, type Collection, Expired, type Position, SlowConsumer } from "@petstore/store/port";
import { EventType } from "#proto/petstore/common/v1/watch_pb.ts";
import { DomainError } from "./errors.ts";
import type { Deps } from "./module.ts";
import { boundTo, readAfter, type Source } from "./page.ts";
import type { StoredRecord } from "./record.ts";
import { createSharedTimer, nextOrTimeout } from "./shared-timer.ts";

/** The longest time without a message, in milliseconds. */
export const HEARTBEAT_MS = 15_000;
/** Records of a snapshot that are read in one page. */
const PAGE = 100;
/** Time limit for each read of a stream, in milliseconds, as a stream need not have a deadline. */
const STEP_MS = 10_000;

/** The attributes of an event besides its record. */
export interface EventAttributes {
  readonly id: string;
  readonly type: EventType;
  readonly time?: Timestamp;
  /** Of the write that made the change, if its trace is recorded. */
  readonly traceparent?: string | undefined;
}

export interface Watched<V, E> {
  /** The name of one record, such as "pet": the prefix of tokens and of event ids. */
  readonly kind: string;
  readonly collection: Pick<Collection<never, never, V>, "changes">;
  /** The type of the stream's messages. */
  readonly response: DescMessage;
  /** Makes an event with the record as a GET shows it. */
  readonly toEvent: (attributes: EventAttributes, id: number, view: V) => E;
}

/** Selects what one caller watches. */
export interface Filter<T, V> {
  /** The records that match. */
  readonly source: (callContext: CallContext) => Source<T>;
  /** Whether a record with this view matches. The view from before a change has only the tracked members. */
  readonly matches: (id: number, view: Partial<V>) => boolean;
}

interface Request {
  readonly resumeToken: string;
  readonly snapshot: boolean;
}

interface Response<E> {
  readonly resumeToken: string;
  readonly response:
    | { readonly case: "event"; readonly value: E }
    | { readonly case: "heartbeat" | "synced"; readonly value: Record<never, never> };
}

const types = { created: EventType.CREATED, updated: EventType.UPDATED, deleted: EventType.DELETED };

export function createWatch<T extends StoredRecord & V, V extends object, E extends Message>(
  { kind, collection, response, toEvent }: Watched<V, E>,
  { clock, sleep }: Pick<Deps, "clock" | "sleep">,
) {
  const timer = createSharedTimer({ clock, sleep });
  const soon = (callContext: CallContext) => Math.min(callContext.deadline, clock() + STEP_MS);
  const idOf = (id: unknown, rev: number) => `${kind}-${id}-${rev}`;
  const presentOf = (doc: T) => toEvent({ id: idOf(doc._id, doc.rev), type: EventType.PRESENT }, doc._id, doc);

  /** One message for each change, so that it is encoded once for all watches that send it. */
  const made = new WeakMap<Change<V>, Response<E>>();
  function responseOf(change: Change<V>): Response<E> {
    const known = made.get(change);
    if (known) return known;
    const { _id, rev, type, time, shown, noted, position } = change;
    const attributes = { id: idOf(_id, rev), type: types[type], time: timestamp(time), traceparent: noted };
    const init: Response<E> = {
      resumeToken: writeResumeToken(kind, { position }),
      response: { case: "event", value: toEvent(attributes, _id as number, shown) },
    };
    const message = create(response, init as never) as unknown as Response<E>;
    made.set(change, message);
    return message;
  }

  return async function* watch(
    { resumeToken, snapshot }: Request,
    { source, matches }: Filter<T, V>,
    call: StreamingCall,
  ): AsyncGenerator<Response<E>, void> {
    const bound = boundTo(source(call), "asc");
    const begin = resumeToken === "" ? undefined : readResumeToken(kind, bound, resumeToken);
    const isWanted = ({ _id, shown, former }: Change<V>) =>
      matches(_id as number, shown) || (former !== undefined && matches(_id as number, former));
    const { signal, draining } = call;
    let sentAt = clock();
    const due = () => sentAt + HEARTBEAT_MS;
    const sent = (response: Response<E>): Response<E> => {
      sentAt = clock();
      return response;
    };
    const say = (place: Place, response: Response<E>["response"]) =>
      sent({ resumeToken: writeResumeToken(kind, place), response });
    const heartbeat = (place: Place) => say(place, { case: "heartbeat", value: {} });

    let place: Place | undefined;
    try {
      const after = begin?.position;
      const changes = await collection.changes({ after, signal, deadline: soon(call) });
      place = begin ?? { position: changes.position, snapshot: snapshot ? { after: 0, bound } : undefined };
      // Sent at once, so that the caller can resume from here whatever happens to the stream.
      yield heartbeat(place);

      const { position } = place;
      let told = place.snapshot?.after;
      while (told !== undefined && !draining.aborted) {
        const start = { after: told, limit: PAGE, order: "asc" } as const;
        // Not its signal, which aborts when the process stops, too: then this page is still sent.
        const reading = { ...call, signal: undefined, deadline: soon(call) };
        const { docs, hasMore } = await readAfter(start, source(reading));
        for (const doc of docs) {
          if (draining.aborted) break;
          told = doc._id;
          place = { position, snapshot: { after: told, bound } };
          yield say(place, { case: "event", value: presentOf(doc) });
        }
        if (hasMore || draining.aborted) continue;
        told = undefined;
        place = { position };
        yield say(place, { case: "synced", value: {} });
      }

      const news = nextOrTimeout(changes, timer);
      try {
        for (let item = await news.next(due()); !item?.done; item = await news.next(due())) {
          for (const change of item?.value ?? []) {
            if (draining.aborted) break;
            place = { position: change.position };
            if (isWanted(change)) yield sent(responseOf(change));
          }
          if (draining.aborted || clock() < due()) continue;
          place = { position: changes.position };
          yield heartbeat(place);
        }
      } finally {
        news.leave();
      }
      yield heartbeat(place);
    } catch (error) {
      throw explain(error, place && writeResumeToken(kind, place));
    }
  };
}

const timestamp = (ms: number): Timestamp =>
  create(TimestampSchema, { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 });

function explain(error: unknown, resumeToken = ""): unknown {
  if (error instanceof Expired) {
    const message = "What has changed since the resume token is no longer known. Begin again with a snapshot.";
    return new DomainError("EVENTS_EXPIRED", message, { cause: error });
  }
  if (error instanceof SlowConsumer) {
    const message = "Changes come faster than they are read here. Go on from the last resume token.";
    return new DomainError("SLOW_CONSUMER", message, { cause: error, metadata: { resumeToken } });
  }
  return error;
}

/** A predicate for ids: true for those given, or for all if none is given. */
export function oneOf(ids: readonly bigint[]): (id: number | undefined) => boolean {
  if (ids.length === 0) return () => true;
  const wanted = new Set(ids.map(Number));
  return (id) => id !== undefined && wanted.has(id);
}

/**
 * Resume tokens: a position in the changes of a collection and, within a snapshot, the last record that was sent. Opaque
 * to callers. A checksum detects a token that was cut off or altered, which might otherwise be valid for another place.
 */
export interface Place {
  readonly position: Position;
  readonly snapshot?: SnapshotPlace | undefined;
}

interface SnapshotPlace {
  /** The id of the last record that was sent; 0 before the first. */
  readonly after: number;
  /** Fingerprint of the filters (`boundTo`). */
  readonly bound: string;
}

/** `kind` is what is watched, such as "pet". */
export function writeResumeToken(kind: string, { position, snapshot }: Place): string {
  const text = [kind, position, ...(snapshot ? [snapshot.after, snapshot.bound] : [])].join(".");
  return `${text}.${checksum(text)}`;
}

/** Throws VALIDATION_FAILED for a token of another kind of changes or, within a snapshot, of other filters. */
function readResumeToken(kind: string, bound: string, token: string): Place {
  const parts = token.split(".");
  const sum = parts.pop();
  const [given, position = "", after, givenBound, ...others] = parts;
  const isPlace = after === undefined || (/^\d{1,16}$/.test(after) && Number.isSafeInteger(Number(after)));
  if (sum !== checksum(parts.join(".")) || position === "" || !isPlace || others.length > 0)
    throw invalid("must be the resume_token of a message as it was received");
  if (given !== kind) throw invalid(`must come from a stream about the same records, and is from one about "${given}"`);
  if (after === undefined || givenBound === undefined) return { position };
  if (givenBound !== bound) throw invalid("is of a snapshot with other filters, which must be told to its end first");
  return { position, snapshot: { after: Number(after), bound } };
}

const checksum = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 6);

const invalid = (what: string) =>
  new DomainError("VALIDATION_FAILED", `${what}. Begin again without it.`, { path: "resume_token" });
