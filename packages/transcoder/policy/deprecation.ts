/** The headers of an operation that is on its way out (RFC 9745, RFC 8594, RFC 5829). */
import { create } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import type { Deprecation, Operation } from "../contract/operation.ts";
import { HttpError } from "../errors/http-error.ts";
import { splitTarget } from "../request/http.ts";
import { pathReader } from "../request/parameters.ts";

/** What the operator of a server may decide about operations that the contract deprecates. */
export interface DeprecationPolicy {
  /** Instead of the contract's dates; milliseconds since 1970. */
  readonly deprecatedAt?: number | undefined;
  readonly sunsetAt?: number | undefined;
  /** After the sunset, answer 410 ENDPOINT_SUNSET instead of going on. */
  readonly goneAfterSunset?: boolean | undefined;
}

/** The dates that hold. @throws Error when the sunset is before the deprecation. */
export function effectiveDates(deprecation: Deprecation, policy: DeprecationPolicy) {
  const deprecatedAt = new Date(policy.deprecatedAt ?? deprecation.deprecatedAt);
  const sunsetAt = new Date(policy.sunsetAt ?? deprecation.sunsetAt);
  if (sunsetAt < deprecatedAt)
    throw new Error(
      `The sunset (${sunsetAt.toISOString()}) must not be before the deprecation (${deprecatedAt.toISOString()}).`,
    );
  return { deprecatedAt, sunsetAt };
}

/** Compiles the headers of every answer of the operation, errors too. The link is left out where the path is no id. */
export function deprecationHeaders(operation: Operation, policy: DeprecationPolicy, basePath: string, codec: Codec) {
  const { deprecation } = operation;
  if (!deprecation) return undefined;
  const { deprecatedAt, sunsetAt } = effectiveDates(deprecation, policy);
  const dates = { deprecation: `@${Math.floor(deprecatedAt.getTime() / 1000)}`, sunset: sunsetAt.toUTCString() };
  const successorOf = successorReader(operation, basePath, codec);
  return (target: string): Record<string, string> => {
    const successor = successorOf(target);
    return successor === undefined ? dates : { ...dates, link: `<${successor}>; rel="successor-version"` };
  };
}

/** Compiles what to ask for instead of a target of the operation. Undefined where there is nothing, or the path is no id. */
export function successorReader(operation: Operation, basePath: string, codec: Codec) {
  const successor = operation.deprecation?.successor;
  if (!successor) return () => undefined;
  const readPath = pathReader(operation, basePath, codec);
  return (target: string): string | undefined => {
    const request = create(operation.method.input);
    try {
      readPath(splitTarget(target).path, request);
    } catch (error) {
      if (error instanceof HttpError) return undefined;
      throw error;
    }
    return basePath + successor(request);
  };
}

/** The sunset from which on the operation has gone; undefined when it goes on. */
export function endOf({ deprecation }: Operation, policy: DeprecationPolicy): Date | undefined {
  return deprecation && policy.goneAfterSunset ? effectiveDates(deprecation, policy).sunsetAt : undefined;
}

/** Compiles the check that an operation has not gone; undefined when it goes on. The check throws HttpError ENDPOINT_SUNSET. */
export function sunsetCheck(operation: Operation, policy: DeprecationPolicy, clock: () => number) {
  const end = endOf(operation, policy);
  if (!end) return undefined;
  const instead = operation.deprecation?.successor ? " The header Link names its successor." : "";
  return () => {
    if (clock() >= end.getTime())
      throw new HttpError("ENDPOINT_SUNSET", `This operation ended on ${end.toUTCString()}.${instead}`);
  };
}
