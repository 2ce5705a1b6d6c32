/** What a caller needs to call a method, read from the contract. What the contract does not say, nobody may call. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { scope as scopeOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { Health } from "../gen/health/v1/health_pb.ts";

export type Access =
  /** The system's own processes alone. */
  | { readonly kind: "internal" }
  /** Everybody, whatever they show. */
  | { readonly kind: "open" }
  /** Whoever has a valid credential, with whatever scopes. */
  | { readonly kind: "authenticated" }
  | { readonly kind: "scope"; readonly scope: string }
  | { readonly kind: "nobody" };

/** Services of a proto package with this part in its name, such as "library.internal.v1", are internal. */
const INTERNAL = "internal";

// Others wrote these contracts, so their methods can't say it themselves.
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

/** Whether what was granted holds the scope: "books:read" itself, "books:*", or "*" for everything. */
export const grants = (granted: ReadonlySet<string>, scope: string): boolean =>
  granted.has(scope) || granted.has("*") || granted.has(scope.replace(/:.*/, ":*"));
