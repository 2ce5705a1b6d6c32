import { METHODS } from "node:http";
import type { HttpRule } from "../gen/google/api/http_pb.ts";

/** The verbs that requests come with. CONNECT never comes so far: it asks for a proxy. */
export const VERBS: readonly string[] = METHODS.filter((verb) => verb !== "CONNECT");

/** In a contract, whatever verb no other rule has. */
export const ANY_VERB = "*";

/** @throws Error when the rule has none, or one that no request comes with */
export function verbOf({ pattern }: HttpRule): string {
  if (pattern.case === undefined) throw new Error("its HTTP rule needs a verb with a path");
  if (pattern.case !== "custom") return pattern.case.toUpperCase();
  const { kind } = pattern.value;
  if (kind !== ANY_VERB && !VERBS.includes(kind))
    throw new Error(`its HTTP rule has the verb "${kind}"; there are *, ${VERBS.join(", ")}`);
  return kind;
}

/** @throws Error when the rule has none */
export const pathOf = ({ pattern }: HttpRule): string =>
  pattern.case === "custom" ? pattern.value.path : (pattern.value ?? "");
