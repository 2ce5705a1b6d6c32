/** WatchEvents: merges the events of the four services into one stream. */
import { create, type Message } from "@bufbuild/protobuf";
import { buildPath } from "@bufbuild/protobuf/reflect";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { callHeaders } from "@petstore/rpc/call";
import { type RpcError, violationError } from "@petstore/rpc/errors";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher } from "@petstore/rpc/server/dispatcher";
import { implement, type StreamingCall } from "@petstore/rpc/server/handlers";
import type { Runtime } from "@petstore/runtime/clock";
import type { Tracing } from "@petstore/trace/tracing";
import { errors, type Reason, reasonOf, rpcError } from "#errors";
import {
  EventService,
  SyncedCloudEventSchema,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "#proto/petstore/event/v1/event_service_pb.ts";
import { isServiceName, type ServiceName } from "../../processes/names.ts";
import { merge } from "./merge.ts";
import { type Around, servicesFor, type WatchedService, type WatchMessage } from "./watched-services.ts";

export interface EventOptions extends Around, Pick<Runtime, "clock" | "random" | "sleep" | "log"> {
  /** Undefined where traces are off. */
  readonly tracing?: Tracing | undefined;
  /** The transports to the services, by the services' type names. */
  readonly transports: ReadonlyMap<string, Transport>;
}

/**
 * How long to wait for an unavailable service before the call fails, in milliseconds. A browser's EventSource does not come
 * back after an error.
 */
const PATIENCE_MS = 5_000;
const RETRY_MS = 250;

/** A service's stream with its first message, which shows that the stream has begun. */
interface Opened {
  readonly service: WatchedService;
  readonly first: WatchMessage;
  readonly rest: AsyncIterator<WatchMessage>;
}

/**
 * Sends a heartbeat as soon as the streams of all services have begun; a failure before that fails the call. A service that
 * becomes unavailable later ends the stream without an error: the caller reconnects with the last id and continues there.
 */
async function* watchEvents(
  { types, petId, snapshot, lastEventId }: WatchEventsRequest,
  { requestId: id, caller, trace, signal }: StreamingCall,
  { transports, basePath, tellUnknown, clock, sleep }: EventOptions,
): AsyncGenerator<WatchEventsResponse, void> {
  const known = readId(lastEventId);
  const asked = servicesFor(types, petId.length > 0);
  const positions = new Map<ServiceName, Position>(
    asked.map(({ name }) => [name, known.get(name) ?? { token: "", inSnapshot: snapshot }]),
  );
  const over = new AbortController();
  const all = AbortSignal.any([signal, over.signal]);
  let hasBegun = false;
  try {
    const opened = await Promise.all(asked.map(openInTime));
    for (const { service, first } of opened) if (first.kind === "heartbeat") note(service, first);
    yield tell();
    hasBegun = true;
    for (const { service, first } of opened) if (first.kind !== "heartbeat") yield* pass(service, first);
    for await (const { service, message } of merge(opened.map(named))) yield* pass(service, message);
  } catch (error) {
    if (!hasBegun || !isAway(error)) throw inOurName(error);
  } finally {
    over.abort();
  }

  async function openInTime(service: WatchedService): Promise<Opened> {
    const giveUpAt = clock() + PATIENCE_MS;
    for (;;) {
      try {
        return await open(service);
      } catch (error) {
        if (all.aborted || !isAway(error) || clock() >= giveUpAt) throw error;
        await sleep(RETRY_MS, all);
      }
    }
  }

  async function open(service: WatchedService): Promise<Opened> {
    const { name, method } = service;
    const transport = transports.get(method.parent.typeName);
    if (!transport) throw new Error(`there is no way to ${method.parent.typeName}`);
    const { token, inSnapshot } = positions.get(name) as Position;
    // Categories are about no pets: their request leaves that out.
    const init = { petId, resumeToken: token, snapshot: inSnapshot && token === "" };
    const input = createAsyncIterable([create(method.input, init) as never]);
    const { message } = await transport.stream(method, all, undefined, callHeaders({ id, caller, trace }), input);
    const rest = reading(service, message);
    const first = await rest.next();
    if (first.done) throw rpcError("UNAVAILABLE", `The ${name} service stops. Try again.`);
    return { service, first: first.value, rest };
  }

  async function* reading(
    service: WatchedService,
    messages: AsyncIterable<Message>,
  ): AsyncGenerator<WatchMessage, void> {
    for await (const message of messages) yield service.read(message, { basePath, tellUnknown });
  }

  /** Advances the position of a service to the message. */
  function note({ name }: WatchedService, { resumeToken, kind }: WatchMessage): void {
    const { inSnapshot } = positions.get(name) as Position;
    positions.set(name, { token: resumeToken, inSnapshot: inSnapshot && kind !== "synced" });
  }

  function* pass(service: WatchedService, message: WatchMessage): Generator<WatchEventsResponse> {
    note(service, message);
    if (message.kind !== "synced") yield tell(message.event);
    else if (![...positions.values()].some(({ inSnapshot }) => inSnapshot)) yield synced();
  }

  function tell(event: WatchEventsResponse["event"] = { case: undefined }): WatchEventsResponse {
    return create(WatchEventsResponseSchema, { id: writeId(positions), event });
  }

  function synced(): WatchEventsResponse {
    const id = writeId(positions);
    const source = `${basePath}/events`;
    const value = create(SyncedCloudEventSchema, { specversion: "1.0", id, source, type: "petstore.synced.v1" });
    return tell({ case: "synced", value });
  }
}

async function* named({ service, rest }: Opened) {
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield { service, message: next.value };
}

/** Whether the service or the connection to it is unavailable, so that the caller can only try again. */
function isAway(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  const reason = reasonOf(error)?.reason;
  return reason === undefined || reason === "UNAVAILABLE";
}

/** The reason of a service, as one of this service. Its field `resume_token` is the caller's field `lastEventId`. */
function inOurName(error: unknown): unknown {
  const said = reasonOf(error);
  if (!(error instanceof ConnectError) || !said) return error;
  const [, problem] = /^resume_token: (.*)/s.exec(error.rawMessage) ?? [];
  return problem === undefined
    ? rpcError(said.reason as Reason, error.rawMessage, error, said.metadata)
    : wrongId(problem);
}

/** The gateway counts streams itself. */
const streamLimits = { streams: Number.POSITIVE_INFINITY, streamsPerCaller: Number.POSITIVE_INFINITY };

/** EventService as a service in this process. */
export function eventTransport(options: EventOptions): Transport {
  const handlers = implement(EventService, { watchEvents: (request, call) => watchEvents(request, call, options) });
  const dispatcher = createDispatcher([handlers], { deps: options, errors, streamLimits });
  return inProcessTransport(() => dispatcher);
}

/** The position in one service's stream. Those in all of them are the id of an event, which is opaque to callers. */
export interface Position {
  /** The resume token to continue with; empty before the first message. */
  readonly token: string;
  /** Whether the snapshot is still incomplete. */
  readonly inSnapshot: boolean;
}

export type Positions = ReadonlyMap<ServiceName, Position>;

export function writeId(positions: Positions): string {
  const parts = [...positions].map(([name, { token, inSnapshot }]) => [name, token, ...(inSnapshot ? [1] : [])]);
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/** Throws VALIDATION_FAILED for a text that is not the id of an event. */
export function readId(id: string): Positions {
  if (id === "") return new Map();
  const parts = parse(Buffer.from(id, "base64url").toString());
  if (!Array.isArray(parts)) throw invalid();
  const positions = parts.map((part): [ServiceName, Position] => {
    if (!Array.isArray(part)) throw invalid();
    const [name, token, inSnapshot] = part;
    if (!isServiceName(name) || typeof token !== "string" || (inSnapshot !== undefined && inSnapshot !== 1))
      throw invalid();
    return [name, { token, inSnapshot: inSnapshot === 1 }];
  });
  // A mangled id may still decode to a valid list: only the exact encoding is accepted.
  if (writeId(new Map(positions)) !== id) throw invalid();
  return new Map(positions);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid();
  }
}

const invalid = () => wrongId("must be the id of an event as it was received. Begin again without it.");

/** VALIDATION_FAILED for the last event id that a caller resumes from. `message` is a sentence without its subject. */
function wrongId(message: string): RpcError {
  const { lastEventId } = WatchEventsRequestSchema.field;
  const field = buildPath(WatchEventsRequestSchema).field(lastEventId).toPath();
  return violationError(errors, [{ field, message, ruleId: "", rule: [], forKey: false }]);
}
