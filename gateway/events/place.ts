/** The id of an event: a place in what each service tells. Opaque to callers. */
import { buildPath } from "@bufbuild/protobuf/reflect";
import type { RpcError } from "@petstore/rpc/errors/catalogue";
import { violationError } from "@petstore/rpc/errors/translate";
import { errors } from "#errors";
import { WatchEventsRequestSchema } from "#proto/petstore/event/v1/event_service_pb.ts";
import type { SourceName } from "./sources.ts";

/** How far a service's part has come. */
export interface Place {
  /** Where to go on; empty before anything was told. */
  readonly token: string;
  /** Its snapshot has not come to its end. */
  readonly inSnapshot: boolean;
}

export type Places = ReadonlyMap<SourceName, Place>;

const NAMES: ReadonlySet<string> = new Set<SourceName>(["pet", "category", "order", "inventory"]);

export function writeId(places: Places): string {
  const parts = [...places].map(([name, { token, inSnapshot }]) => [name, token, ...(inSnapshot ? [1] : [])]);
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/** Throws VALIDATION_FAILED for what is no id of an event. */
export function readId(id: string): Places {
  if (id === "") return new Map();
  const parts = parse(Buffer.from(id, "base64url").toString());
  if (!Array.isArray(parts)) throw invalid();
  const places = parts.map((part): [SourceName, Place] => {
    if (!Array.isArray(part)) throw invalid();
    const [name, token, inSnapshot] = part;
    if (!NAMES.has(name) || typeof token !== "string" || (inSnapshot !== undefined && inSnapshot !== 1))
      throw invalid();
    return [name, { token, inSnapshot: inSnapshot === 1 }];
  });
  // What was mangled may still be an id of another form.
  if (writeId(new Map(places)) !== id) throw invalid();
  return new Map(places);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid();
  }
}

const invalid = () => wrongId("must be the id of an event as it was received. Begin again without it.");

/** VALIDATION_FAILED for the id that a caller goes on behind. `message` is a sentence without its subject. */
export function wrongId(message: string): RpcError {
  const { lastEventId } = WatchEventsRequestSchema.field;
  const field = buildPath(WatchEventsRequestSchema).field(lastEventId).toPath();
  return violationError(errors, [{ field, message, ruleId: "", rule: [], forKey: false }]);
}
