/** Which RPCs a request for events stands for: its caller has to be allowed each of them. */
import type { DescMethod } from "@bufbuild/protobuf";
import { parseQuery, splitTarget } from "connect-transcoder";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { type Source, sources, sourcesFor } from "./sources.ts";

/**
 * The RPCs whose scopes a request needs: that which it calls, or, of WatchEvents, the Watch RPCs of the types that it asks
 * for. Who asks is judged before the query is; what can't be read asks for everything, and is refused later.
 */
export function neededMethods(target: string, method: DescMethod): readonly [DescMethod, ...DescMethod[]] {
  if (method.parent.typeName !== EventService.typeName) return [method];
  const [first, ...others] = asked(target).map((source) => source.method);
  return first ? [first, ...others] : [method];
}

function asked(target: string): readonly Source[] {
  const query = parametersOf(target);
  const values = (name: string) => query.filter(([one]) => one === name).flatMap(([, value]) => value.split(","));
  const types = values("types").map((value) => sources.find(({ name }) => name === value)?.type);
  const known = types.filter((type) => type !== undefined);
  return known.length < types.length ? sources : sourcesFor(known, values("petId").length > 0);
}

function parametersOf(target: string): readonly (readonly [string, string])[] {
  try {
    return parseQuery(splitTarget(target).query);
  } catch {
    return [];
  }
}
