/** A document has no component that nothing refers to: a contract can do without most of what every one may use. */
import type { Json, JsonObject } from "./json.ts";

/** The components that other parts of a document refer to, and those that these refer to in turn, in their order. */
export function referredOnly(components: JsonObject, others: Json): JsonObject {
  const referred = new Set<string>();
  const open: Json[] = [others];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const [name, member] of Object.entries(next)) {
      if (member === undefined) continue;
      const [, kind, called] = (name === "$ref" && REFERENCE.exec(String(member))) || [];
      if (kind === undefined || called === undefined) open.push(member);
      else if (!referred.has(`${kind}/${called}`)) {
        referred.add(`${kind}/${called}`);
        open.push((components[kind] as JsonObject | undefined)?.[called] ?? null);
      }
    }
  }
  return Object.fromEntries(
    Object.entries(components).map(([kind, named]) => [
      kind,
      // Operations name these, and don't refer to them.
      kind === "securitySchemes"
        ? named
        : named && kept(named as JsonObject, (name) => referred.has(`${kind}/${name}`)),
    ]),
  );
}

const REFERENCE = /^#\/components\/(\w+)\/([\w.-]+)$/;

const kept = (named: JsonObject, isKept: (name: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(named).filter(([name]) => isKept(name)));
