import type { DescMethod } from "@bufbuild/protobuf";
import { linkTo } from "./link.ts";
import type { Deprecation } from "./operation.ts";

/** When an operation ends, as annotated. @throws Error when its dates are none, or in the wrong order */
export function deprecationOf(
  deprecation: { deprecatedAt: string; sunsetAt: string; successor: string } | undefined,
  { input }: DescMethod,
): Deprecation | undefined {
  if (!deprecation) return undefined;
  const [deprecatedAt, sunsetAt] = [new Date(deprecation.deprecatedAt), new Date(deprecation.sunsetAt)];
  if (!(deprecatedAt.getTime() <= sunsetAt.getTime()))
    throw new Error("it needs a sunset that is not before its deprecation");
  const successorTemplate = deprecation.successor;
  return {
    deprecatedAt,
    sunsetAt,
    successorTemplate,
    successor: successorTemplate ? linkTo(successorTemplate, input) : undefined,
  };
}
