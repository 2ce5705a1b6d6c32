import type { HttpRule } from "../gen/google/api/http_pb.ts";
import type { Verb } from "./operation.ts";

/** @throws Error when the rule has none, or one that is not served */
export function verbOf({ pattern }: HttpRule): Verb {
  if (pattern.case === undefined || pattern.case === "custom") throw new Error("its HTTP rule needs one of the verbs");
  return pattern.case.toUpperCase() as Verb;
}
