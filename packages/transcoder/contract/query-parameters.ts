/** What an operation's query may fill: fields of the request, and fields of the messages in it, such as `book.author.name`. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type FieldPath, lastOf } from "./field-path.ts";
import { byName, isOutputOnly } from "./fields.ts";
import type { Operation } from "./operation.ts";
import { remembered } from "./remembered.ts";
import { isTextual } from "./well-known.ts";

export interface QueryParameter {
  readonly path: FieldPath;
  /** The key between the brackets of `labels[color]`, where the field is a map. */
  readonly key: string | undefined;
  /** Whether the path fills the field, which counts more than the query. */
  readonly isInPath: boolean;
}

/** What a query may fill of a request: `query` are its fields, of which those in `params` are left out. */
type Fillable = Pick<Operation, "query" | "params" | "method">;

/** Whether parameters lead into the field. What is in a list has no name; the well-known types have forms of their own. */
const isWay = (field: DescField): field is DescField & { readonly message: DescMessage } =>
  field.fieldKind === "message" && !isTextual(field) && !field.message.typeName.startsWith("google.protobuf.");

/** Compiles the search for parameters by name. A name costs as many steps as it has parts. */
export function parameterFinder({ query, params, method }: Fillable, jsonNamesOnly = false) {
  const inQuery = new Set(query);
  const roots = byName([...new Set([...query, ...params.map(([field]) => field)])], jsonNamesOnly);
  const membersOf = remembered((desc: DescMessage) => byName(usable(desc), jsonNamesOnly));
  /** The fields of the request itself, which most parameters are. */
  const plain = new Map<string, QueryParameter>();
  for (const [name, field] of roots)
    if (isTextual(field) && (inQuery.has(field) || isIn(params, [field])))
      plain.set(name, { path: [field], key: undefined, isInPath: isIn(params, [field]) });

  function findWithin(name: string): QueryParameter | undefined {
    const bracket = name.endsWith("]") ? name.indexOf("[") : -1;
    const key = bracket < 0 ? undefined : name.slice(bracket + 1, -1);
    const path: DescField[] = [];
    const above = new Set<DescMessage>([method.input]);
    let members: ReadonlyMap<string, DescField> | undefined = roots;
    for (const part of (bracket < 0 ? name : name.slice(0, bracket)).split(".")) {
      const field: DescField | undefined = members?.get(part);
      if (!field) return undefined;
      path.push(field);
      members = undefined;
      // A message within itself is left out: so the number of parameters has an end.
      if (isWay(field) && !above.has(field.message)) {
        above.add(field.message);
        members = membersOf(field.message);
      }
    }
    const found = path as unknown as FieldPath;
    const last = lastOf(found);
    if (!isTextual(last) || (key !== undefined && last.fieldKind !== "map")) return undefined;
    const isInPath = isIn(params, found);
    return isInPath || inQuery.has(found[0]) ? { path: found, key, isInPath } : undefined;
  }

  return (name: string): QueryParameter | undefined => plain.get(name) ?? findWithin(name);
}

/** No more fields than these are looked at for the list of an operation's parameters: a contract can have any number. */
export const MOST_LISTED = 500;

/**
 * The parameters of an operation, in the order of its contract: of messages as deep as they are, of very many the first ones.
 * `isCut` says that there are more.
 */
export function listParameters({ query, params, method }: Fillable): {
  readonly paths: readonly FieldPath[];
  readonly isCut: boolean;
} {
  const found: FieldPath[] = [];
  let looked = 0;
  const look = (fields: readonly DescField[], above: readonly DescField[], types: readonly DescMessage[]): void => {
    for (const field of fields) {
      if (looked++ >= MOST_LISTED) return;
      const path: FieldPath = [...above, field] as unknown as FieldPath;
      if (isTextual(field)) {
        if (!isIn(params, path)) found.push(path);
      } else if (isWay(field) && !types.includes(field.message))
        look(usable(field.message), path, [...types, field.message]);
    }
  };
  look(query, [], [method.input]);
  return { paths: found, isCut: looked > MOST_LISTED };
}

const usable = (desc: DescMessage): DescField[] => desc.fields.filter((field) => !isOutputOnly(field));

const isIn = (paths: readonly FieldPath[], path: FieldPath): boolean =>
  paths.some((one) => one.length === path.length && one.every((field, i) => field === path[i]));
