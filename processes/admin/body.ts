/** Reads what a request to the admin port brings, and says what is wrong with it. */
import type { Format } from "@petstore/runtime/environment";
import { Unusable } from "../admin.ts";

/** Throws `Unusable`. */
export function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new Unusable(`The body is no JSON: ${(error as Error).message}`);
  }
}

/** The members of a JSON object, which may be left out. Throws `Unusable`. */
export function membersOf<const M extends Readonly<Record<string, "string" | "number">>>(
  body: string,
  members: M,
): { [N in keyof M]?: M[N] extends "number" ? number : string } {
  const value = parsed(body.trim() === "" ? "{}" : body);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Unusable("The body must be a JSON object.");
  for (const [name, member] of Object.entries(value)) {
    if (!(name in members))
      throw new Unusable(`${name} is not known here: there is ${Object.keys(members).join(", ")}.`);
    if (typeof member !== members[name]) throw new Unusable(`${name} must be a ${members[name]}.`);
  }
  return value as never;
}

/** Throws `Unusable`. */
export function readAs<T>(format: Format<T>, name: string, text = ""): T {
  const value = format.read(text);
  if (value === undefined) throw new Unusable(`${name} must be ${format.description}.`);
  return value;
}
