/** From messages and enums to named JSON Schemas (2020-12), those of the document's components. */
import { type DescEnum, type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type Codec, enumNames, isOfItems, NULL_VALUE } from "../contract/codec.ts";
import { headerOf, isClearable, isOutputOnly } from "../contract/fields.ts";
import { isMerged } from "../contract/operation.ts";
import { isNullable } from "../response/encode.ts";
import { isLong } from "../response/scalars.ts";
import { type JsonObject, refer as referTo } from "./json.ts";
import { behaviorKeywords, isRequired, ownKeywords } from "./presence.ts";
import { ruleKeywords } from "./rules.ts";
import type { Told } from "./sources.ts";
import { addressBytes, enumSchema, inText, nullable, scalarSchema, valueNames, wellKnownSchema } from "./values.ts";

/**
 * Whether a value is sent by callers, in a body, in a merge patch or beside a body, or comes to them. A message that goes both ways is held to both.
 */
export type Direction = "input" | "patch" | "parameter" | "output";

export type Schemas = ReturnType<typeof createSchemas>;

/** `reserved` are names of schemas that stand beside these. */
export function createSchemas(
  { docs, files, examples = {}, patchExamples = {} }: Pick<Told, "docs" | "files" | "examples" | "patchExamples">,
  codec: Codec,
  reserved: readonly string[],
) {
  const named = new Map<string, { of: string; schema: () => JsonObject }>();
  const inputs = new Set<DescMessage>();

  const memberName = ({ name, jsonName }: DescField): string => (codec.originalNames ? name : jsonName);
  const properties = (fields: readonly DescField[], schema: (member: DescField) => JsonObject): JsonObject =>
    Object.fromEntries(fields.map((member) => [memberName(member), schema(member)]));
  const names = (fields: readonly DescField[]): string[] | undefined =>
    fields.length === 0 ? undefined : fields.map(memberName);

  /** Whether a caller has to send the field. */
  const isAsked = (desc: DescField): boolean => isRequired(desc, true, files, codec);

  /** Whether integers of a field are written as strings. */
  const isLongText = ({ scalar, message: held }: DescField): boolean => {
    const type = held && isWrapperDesc(held) ? held.fields[0].scalar : scalar;
    return type !== undefined && codec.writesLongsAsText && isLong(type);
  };

  const isFree = (name: string, of: string) => !reserved.includes(name) && (named.get(name)?.of ?? of) === of;

  /** Refers to a schema by its short name, or by `of`, which is unique, where another schema has the short one already. */
  function refer(short: string, of: string, schema: () => JsonObject): JsonObject {
    // Without a package both are one.
    const name = [short, of].find((candidate) => isFree(candidate, of)) ?? `${of}-2`;
    if (!named.has(name)) {
      named.set(name, { of, schema });
      schema(); // finds what it refers to in turn
    }
    return referTo("schemas", name);
  }

  /** Refers to the schema of a message. */
  function message(desc: DescMessage, direction: Direction): JsonObject {
    const known = wellKnownSchema(desc, codec);
    if (known) return known;
    const isNewInput = direction === "input" && !inputs.has(desc);
    if (isNewInput) inputs.add(desc);
    const reference = refer(desc.name, desc.typeName, () => {
      const required = membersOf(desc).filter((member) => isRequired(member, inputs.has(desc), files, codec));
      return described(desc, {
        description: choices(desc, memberName) || undefined,
        type: "object",
        properties: properties(membersOf(desc), (member) => field(member, direction)),
        required: names(required),
        examples: examples[desc.typeName],
      });
    });
    // Messages within it may have been met in answers only: from now on they are requests, too.
    if (isNewInput) for (const member of membersOf(desc)) if (member.message) message(member.message, direction);
    return reference;
  }

  /** Refers to the schema of a merge patch of a message. */
  const mergePatch = (desc: DescMessage): JsonObject =>
    refer(`${desc.name}Patch`, `${desc.typeName}-patch`, () => ({
      description:
        `A merge patch (RFC 7396) of ${desc.name}: a member that is absent stays as it is, and null removes ` +
        "one where it is allowed.",
      type: "object",
      properties: properties(membersOf(desc), (member) =>
        isClearable(member) || (codec.nullIsUnset && !isNullable(member, codec))
          ? nullable(field(member, "patch"))
          : field(member, "patch"),
      ),
      examples: patchExamples[desc.typeName],
    }));

  /** The schema of one value of a field, with what the contract says about it. */
  function field(desc: DescField, direction: Direction): JsonObject {
    const { description, ...keywords } = behaviorKeywords(desc);
    const held = container(desc, direction);
    const mayBeNull = isNullable(desc, codec) && direction !== "parameter" && !(direction === "input" && isAsked(desc));
    const schema = mayBeNull ? nullable(held) : held;
    const words = [schema.description, description].filter(Boolean).join(" ");
    return described(desc, {
      ...schema,
      ...(words !== "" && { description: words }),
      readOnly: isOutputOnly(desc) ? true : undefined,
      ...keywords,
    });
  }

  function container(desc: DescField, direction: Direction): JsonObject {
    const fitting = isLongText(desc) ? inText : (keywords: JsonObject) => keywords;
    const own = ownKeywords(desc, files, codec);
    // A rule narrows what the type allows. Keywords beside $ref count in JSON Schema 2020-12.
    if (desc.fieldKind !== "list" && desc.fieldKind !== "map") return { ...value(desc, direction), ...fitting(own) };
    const { items, keys } = rulesWithin(desc);
    const item = { ...value(desc, direction), ...(items && fitting(ruleKeywords(items, files))) };
    if (desc.fieldKind === "list") return { type: "array", items: item, ...own };
    const names = keys && desc.mapKey === ScalarType.STRING ? ruleKeywords(keys, files) : {};
    const propertyNames = Object.keys(names).length > 0 ? names : undefined;
    return { type: "object", propertyNames, additionalProperties: item, ...own };
  }

  function value(desc: DescField, direction: Direction): JsonObject {
    if (direction === "patch") return isMerged(desc) ? mergePatch(desc.message) : value(desc, "input");
    if (desc.message) return message(desc.message, direction);
    if (desc.enum?.typeName === NULL_VALUE) return enumSchema(desc.enum, codec);
    if (desc.enum)
      return direction !== "parameter" && isOfItems(desc) && !codec.hasFullEnumNames && !codec.enumNumbers
        ? enumItem(desc, desc.enum)
        : enumeration(desc.enum);
    if (desc.scalar === ScalarType.BYTES && direction === "parameter") return addressBytes;
    return scalarSchema(desc.scalar as NonNullable<typeof desc.scalar>, codec);
  }

  const enumeration = (desc: DescEnum): JsonObject =>
    refer(desc.name, desc.typeName, () => {
      const meanings = desc.values
        .map(({ name, number }) => [
          valueNames(desc, codec).find(([, n]) => n === number)?.[0],
          docs[`${desc.typeName}.${name}`],
        ])
        .flatMap(([name, text]) => (name && text ? [`- \`${name}\`: ${text}`] : []));
      const description = [docs[desc.typeName], meanings.join("\n")].filter(Boolean).join("\n\n");
      return { description: description || undefined, ...enumSchema(desc, codec) };
    });

  /** With the name that "unspecified" has there, unless the rules exclude it. */
  function enumItem(field: DescField, desc: DescEnum): JsonObject {
    const { items } = rulesWithin(field);
    if (items?.type.case === "enum" && items.type.value.notIn.includes(0)) return enumeration(desc);
    const unspecified = enumNames(desc, true).filter(
      ([, number]) => !enumNames(desc).some(([, other]) => other === number),
    );
    return unspecified.length > 0
      ? { anyOf: [enumeration(desc), { enum: unspecified.map(([name]) => name) }] }
      : enumeration(desc);
  }

  /** By the contract's comment, and by what no keyword says. */
  const described = (desc: DescField | DescMessage, { description, ...schema }: JsonObject): JsonObject => {
    const name = desc.kind === "field" ? `${desc.parent.typeName}.${desc.name}` : desc.typeName;
    return { description: [docs[name], description].filter(Boolean).join("\n\n") || undefined, ...schema };
  };

  /** Refers to the schema of a request with a merge patch in it, that of `resource`. Its update mask need not be there. */
  const wholePatch = (
    desc: DescMessage,
    fields: readonly DescField[],
    resource: DescField,
    mask: DescField,
  ): JsonObject =>
    refer(`${desc.name}Patch`, [desc.typeName, "patch", ...fields.map(({ number }) => number)].join("-"), () => ({
      type: "object",
      properties: properties(fields, (member) => field(member, member === resource ? "patch" : "input")),
      required: names(fields.filter((member) => member !== mask && isAsked(member))),
    }));

  /** The schema of an object with these fields as members. */
  const object = (fields: readonly DescField[]): JsonObject => ({
    type: "object",
    properties: properties(fields, (member) => field(member, "input")),
    required: names(fields.filter(isAsked)),
  });

  return {
    codec,
    message,
    mergePatch,
    wholePatch,
    field,
    object,
    isAsked,
    /** Refers to the schema of an array of what the field lists. */
    list: (name: string, desc: DescField) =>
      refer(name, `${desc.parent.typeName}.${desc.name}`, () => ({ type: "array", items: value(desc, "output") })),
    /** Every schema that was referred to, by name. Built anew, for only now it is known which messages are inputs. */
    components: (): JsonObject =>
      Object.fromEntries([...named].sort(byName).map(([name, { schema }]) => [name, schema()])),
  };
}

/** What no keyword says without a schema for each choice. */
const choices = ({ oneofs }: DescMessage, nameOf: (field: DescField) => string): string =>
  oneofs.map(({ fields }) => `At most one of ${fields.map((one) => `\`${nameOf(one)}\``).join(", ")}.`).join(" ");

const membersOf = (desc: DescMessage): DescField[] => desc.fields.filter((field) => headerOf(field) === "");

/** The rules for the items of a list, or for the keys and values of a map. */
function rulesWithin(field: DescField): { items?: FieldRules | undefined; keys?: FieldRules | undefined } {
  const { type } = getOption(field, fieldRules);
  if (type.case === "repeated") return { items: type.value.items };
  return type.case === "map" ? { items: type.value.values, keys: type.value.keys } : {};
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);
