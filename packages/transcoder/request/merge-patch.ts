/** Which fields a merge patch (RFC 7396) changes, as the paths of an update mask (AIP-134, AIP-161). */
import { create, type DescField, type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { assignAt } from "../contract/field-path.ts";
import { byName, remembered } from "../contract/fields.ts";
import { isMerged, type Operation } from "../contract/operation.ts";
import { isUsed } from "./decode.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { SchemaError } from "./schema-error.ts";

/** A mask with more paths is not made: with many of them deep in a message, it could be far larger than the patch. */
const MOST_PATHS = 1000;

/**
 * Compiles what fills the update mask of a message from the patch of its resource, unless the message has a mask already.
 *
 * @throws SchemaError when the patch changes nothing, or too much
 */
export function maskFiller(
  { updateMask, acceptsEmptyMask, params }: Operation,
  root: DescField,
  jsonNamesOnly: boolean,
) {
  const { message: desc } = root;
  if (!updateMask || !desc) return () => {};
  // The path says which resource it is, and that does not change.
  const fixed = params
    .filter(([first]) => first === root)
    .map(([, ...within]) => within.map(({ name }) => name).join("."));
  const pathsIn = pathsReader(jsonNamesOnly);
  const names = desc.fields
    .filter((field) => isUsed(field) && !fixed.includes(field.name))
    .map(({ jsonName }) => jsonName);
  return (message: Message, patch: JsonValue): void => {
    if (isFieldSet(message, updateMask) || !(patch instanceof Map)) return;
    const paths = pathsIn(patch, desc).filter((path) => !fixed.includes(path));
    if (paths.length === 0 && !acceptsEmptyMask)
      throw new SchemaError(`names no member that can be changed: it must name at least one of ${names.join(", ")}`);
    assignAt(message, [updateMask], create(FieldMaskSchema, { paths }));
  };
}

function pathsReader(jsonNamesOnly: boolean) {
  const membersOf = remembered(({ fields }: DescMessage) => byName(fields.filter(isUsed), jsonNamesOnly));
  return (patch: JsonObject, resource: DescMessage): string[] => {
    const paths: string[] = [];
    const look = (object: JsonObject, desc: DescMessage, prefix: string): void => {
      const members = membersOf(desc);
      for (const [name, item] of object) {
        const field = members.get(name);
        if (!field) continue;
        const path = prefix + field.name;
        // A message type without fields has nothing to name below it: its own path is named.
        if (item instanceof Map && isMerged(field) && field.message.fields.length > 0)
          look(item, field.message, `${path}.`);
        else if (paths.push(path) > MOST_PATHS)
          throw new SchemaError(`must not change more than ${MOST_PATHS} members`);
      }
    };
    look(patch, resource, "");
    return paths;
  };
}
