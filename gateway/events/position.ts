/** The id of an event: the position in each service's stream of events. Opaque to callers. */
import { buildPath } from "@bufbuild/protobuf/reflect";
import type { RpcError } from "@petstore/rpc/errors";
import { violationError } from "@petstore/rpc/errors";
import { errors } from "#errors";
import { WatchEventsRequestSchema } from "#proto/petstore/event/v1/event_service_pb.ts";
import { isServiceName, type ServiceName } from "../../processes/names.ts";

/** The position in one service's stream. */
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
export function wrongId(message: string): RpcError {
  const { lastEventId } = WatchEventsRequestSchema.field;
  const field = buildPath(WatchEventsRequestSchema).field(lastEventId).toPath();
  return violationError(errors, [{ field, message, ruleId: "", rule: [], forKey: false }]);
}
