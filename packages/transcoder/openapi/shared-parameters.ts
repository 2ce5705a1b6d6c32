/** Parameters that several operations have in common stand once, among the components of the document. */
import type { Verb } from "../contract/operations.ts";
import { groupBy } from "./group-by.ts";
import { type JsonObject, jsonText } from "./json.ts";

interface Parameterized {
  readonly verb: Verb;
  readonly parameters: readonly JsonObject[];
}

/** Those that are shared, by what they are called, and how an operation has its parameters: as references, or in full. */
export function shareParameters(operations: readonly Parameterized[]) {
  const uses = operations.flatMap(({ verb, parameters }) => parameters.map((parameter) => ({ verb, parameter })));
  const groups = groupBy(uses, ({ parameter }) => jsonText(parameter));
  const shared = new Map<string, { name: string; parameter: JsonObject }>();
  const taken = new Set<string>();
  // Of several that are called alike the one that most have gets the plain name.
  for (const [text, alike] of [...groups].sort(([, a], [, b]) => b.length - a.length)) {
    const [first] = alike;
    if (!first || alike.length === 1) break;
    const { parameter } = first;
    const name = freeName(parameter.name as string, new Set(alike.map(({ verb }) => verb)), taken);
    taken.add(name);
    shared.set(text, { name, parameter });
  }
  return {
    components: Object.fromEntries(
      [...shared.values()]
        .map(({ name, parameter }) => [name, parameter] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
    refer: (parameter: JsonObject): JsonObject => {
      const name = shared.get(jsonText(parameter))?.name;
      return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
    },
  };
}

/** Such as "RequestId" of "X-Request-Id"; "PetIdOnGet" where other operations than those have another parameter of that name. */
function freeName(parameter: string, verbs: ReadonlySet<Verb>, taken: ReadonlySet<string>): string {
  const words = parameter.replace(/^x-/i, "").match(/[\dA-Za-z]+/g) ?? ["Parameter"];
  const plain = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  const [verb = "", ...others] = verbs;
  const choices = others.length > 0 ? [plain] : [plain, `${plain}On${verb.charAt(0)}${verb.slice(1).toLowerCase()}`];
  const free = choices.find((choice) => !taken.has(choice));
  if (free !== undefined) return free;
  let number = 2;
  while (taken.has(plain + number)) number++;
  return plain + number;
}
