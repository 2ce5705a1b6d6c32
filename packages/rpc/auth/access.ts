/** What a caller needs to call a method, as the contract declares it. Nobody may call a method that declares nothing. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { scope as scopeOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { Health } from "../gen/health/v1/health_pb.ts";

export type Access =
  /** Only the system's own processes. */
  | { readonly kind: "internal" }
  /** Everybody, with or without credentials. */
  | { readonly kind: "open" }
  /** Every caller with a valid credential, whatever its scopes. */
  | { readonly kind: "authenticated" }
  | { readonly kind: "scope"; readonly scope: string }
  | { readonly kind: "nobody" };

/** Services of a proto package with this part in its name, such as "library.internal.v1", are internal. */
const INTERNAL = "internal";

// Contracts of third parties, whose methods can't declare a scope.
const byService = new Map<string, Access>([
  [Health.typeName, { kind: "open" }],
  [ServerReflection.typeName, { kind: "authenticated" }],
  [ServerReflectionAlpha.typeName, { kind: "authenticated" }],
]);

export const isInternal = ({ parent }: DescMethod): boolean => parent.file.proto.package.split(".").includes(INTERNAL);

export function accessOf(method: DescMethod): Access {
  if (isInternal(method)) return { kind: "internal" };
  const known = byService.get(method.parent.typeName);
  if (known) return known;
  const scope = getOption(method, scopeOption);
  return scope === "" ? { kind: "nobody" } : { kind: "scope", scope };
}

/** Whether the granted scopes include one: as "books:read" itself, "books:*", or "*" for everything. */
export const grants = (granted: ReadonlySet<string>, scope: string): boolean =>
  granted.has(scope) || granted.has("*") || granted.has(scope.replace(/:.*/, ":*"));
