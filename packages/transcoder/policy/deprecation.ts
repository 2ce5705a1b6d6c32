/** The headers of an operation that is on its way out (RFC 9745, RFC 8594, RFC 5829). */
import { create } from "@bufbuild/protobuf";
import type { Deprecation, Operation } from "../contract/operations.ts";
import { HttpError } from "../errors/http-error.ts";
import { pathReader } from "../request/path.ts";
import { splitTarget } from "../request/target.ts";

/** What the operator of a server may decide about operations that the contract deprecates. */
export interface DeprecationPolicy {
  /** Instead of the contract's dates; milliseconds since 1970. */
  readonly deprecatedAt?: number | undefined;
  readonly sunsetAt?: number | undefined;
  /** After the sunset, answer 410 ENDPOINT_SUNSET instead of going on. */
  readonly goneAfterSunset?: boolean | undefined;
}

/** The dates that hold. @throws Error when the sunset is before the deprecation. */
export function effectiveDates(
  deprecation: Deprecation,
  policy: DeprecationPolicy,
): { deprecatedAt: Date; sunsetAt: Date } {
  const deprecatedAt = new Date(policy.deprecatedAt ?? deprecation.deprecatedAt);
  const sunsetAt = new Date(policy.sunsetAt ?? deprecation.sunsetAt);
  if (sunsetAt < deprecatedAt)
    throw new Error(
      `The sunset (${sunsetAt.toISOString()}) must not be before the deprecation (${deprecatedAt.toISOString()}).`,
    );
  return { deprecatedAt, sunsetAt };
}

/** Compiles the headers of every answer of the operation, errors too. The link is left out where the path is no id. */
export function deprecationHeaders(operation: Operation, policy: DeprecationPolicy, basePath: string) {
  const { deprecation } = operation;
  if (!deprecation) return undefined;
  const { deprecatedAt, sunsetAt } = effectiveDates(deprecation, policy);
  const dates = {
    deprecation: `@${Math.floor(deprecatedAt.getTime() / 1000)}`,
    sunset: sunsetAt.toUTCString(),
  };
  const readPath = pathReader(operation, basePath);
  return (target: string): Record<string, string> => {
    const link = successorLink(target);
    return link === undefined ? dates : { ...dates, link };
  };

  function successorLink(target: string): string | undefined {
    if (!deprecation?.successor) return undefined;
    const request = create(operation.method.input);
    try {
      readPath(splitTarget(target).path, request);
    } catch (error) {
      if (error instanceof HttpError) return undefined;
      throw error;
    }
    return `<${basePath}${deprecation.successor(request)}>; rel="successor-version"`;
  }
}

/** Compiles the check that an operation has not gone. @throws HttpError ENDPOINT_SUNSET */
export function sunsetCheck({ deprecation }: Operation, policy: DeprecationPolicy, clock: () => number): () => void {
  if (!deprecation || !policy.goneAfterSunset) return () => {};
  const { sunsetAt } = effectiveDates(deprecation, policy);
  const instead = deprecation.successor ? " The header Link names its successor." : "";
  return () => {
    if (clock() >= sunsetAt.getTime())
      throw new HttpError("ENDPOINT_SUNSET", `This operation ended on ${sunsetAt.toUTCString()}.${instead}`);
  };
}
