/** Which RPCs a request for events needs: its caller must be allowed to call each of them. */
import type { DescMethod } from "@bufbuild/protobuf";
import { parseQuery, splitTarget } from "connect-transcoder";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { servicesFor, type WatchedService, watchedServices } from "./watched-services.ts";

/**
 * The RPCs whose scopes a request needs: the one that it calls, or for WatchEvents the Watch RPCs of the record types that
 * it asks for. The caller is authorized before the query is validated: a query that can't be read needs the RPCs of all
 * types, and is refused later.
 */
export function neededMethods(target: string, method: DescMethod): readonly [DescMethod, ...DescMethod[]] {
  if (method.parent.typeName !== EventService.typeName) return [method];
  const [first, ...others] = asked(target).map(({ method }) => method);
  return first ? [first, ...others] : [method];
}

function asked(target: string): readonly WatchedService[] {
  const query = parametersOf(target);
  const values = (name: string) => query.filter(([one]) => one === name).flatMap(([, value]) => value.split(","));
  const types = values("types").map((value) => watchedServices.find(({ name }) => name === value)?.type);
  const known = types.filter((type) => type !== undefined);
  return known.length < types.length ? watchedServices : servicesFor(known, values("petId").length > 0);
}

function parametersOf(target: string): readonly (readonly [string, string])[] {
  try {
    return parseQuery(splitTarget(target).query);
  } catch {
    return [];
  }
}
