/** Which fields the variables of a path can fill: those whose values are told by one text. */
import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { isTextual } from "../request/text.ts";
import { lastOf } from "./field-path.ts";
import type { Variable } from "./template.ts";

/** @throws Error, made by `wrong`, that names the variable */
export function ensureVariables(variables: readonly Variable[], wrong: (what: string) => Error): void {
  const names = new Set<string>();
  /** What is set so far of each oneof, by its full name within the request. */
  const chosen = new Map<string, string>();
  for (const { field: path, isMulti } of variables) {
    const name = nameOf(path);
    const { fieldKind, scalar } = lastOf(path);
    if (names.has(name)) throw wrong(`has {${name}} twice`);
    names.add(name);
    if (fieldKind === "list" || fieldKind === "map") throw wrong(`has {${name}}, which must not be repeated`);
    if (!isTextual(lastOf(path)))
      throw wrong(`has {${name}}, which must be a scalar, an enum or another value that a text can tell`);
    if (isMulti && scalar !== ScalarType.STRING)
      throw wrong(`has {${name}} with several segments, which must be a string`);
    for (const [i, { oneof }] of path.entries()) {
      if (!oneof) continue;
      const [place, choice] = [nameOf([...path.slice(0, i), oneof]), nameOf(path.slice(0, i + 1))];
      const other = chosen.get(place) ?? choice;
      if (other !== choice) throw wrong(`fills both ${other} and ${choice} of the oneof ${place}`);
      chosen.set(place, choice);
    }
  }
}

/** As the contract writes it, such as "book.author.name". */
const nameOf = (path: readonly Pick<DescField, "name">[]): string => path.map(({ name }) => name).join(".");
