/**
 * From the bytes of an answer to its JSON text, by the descriptor and without messages between. It knows what answers are
 * usually made of. Whatever else there is, and what is wrong with bytes, is left to the library and to `encode.ts`.
 */
import { type DescField, type DescMessage, fromBinary, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { enumTexts } from "../contract/enums.ts";
import { headerOf } from "../contract/fields.ts";
import type { Operation } from "../contract/operations.ts";
import { formatTimestamp } from "../request/timestamp.ts";
import { emptyOf } from "./encode.ts";
import { WireReader } from "./wire-reader.ts";

/** What an HTTP response needs of an answer. */
export class Shown {
  /** JSON text. */
  readonly body: string;
  /** By local name: fields that travel as headers, and the token of the next page. One that was not sent is absent. */
  readonly beside: Readonly<Record<string, string>>;

  constructor(body: string, beside: Readonly<Record<string, string>>) {
    this.body = body;
    this.beside = beside;
  }
}

/** Reads an answer. Undefined for one that the library has to judge. */
export type ReadShown = (bytes: Uint8Array) => Shown | undefined;

/** Compiles the reader of an operation's answers. Undefined where they are needed as messages. */
export function shownReader(operation: Operation): ReadShown | undefined {
  const { method, response, responseHeaders, paging, location, successStatus } = operation;
  if (location || successStatus === 204 || (paging && !response)) return undefined;
  const beside = responseHeaders.map(({ field }) => field);
  if (!response)
    return reading(planOf(method.output, { beside, plans: new Map() }), (plan, reader) => reader.message(plan));
  if (response.fieldKind !== "list" && response.fieldKind !== "message") return undefined;
  const token = paging ? [paging.nextPageToken] : [];
  const plan = planOf(method.output, { beside: [...beside, ...token], plans: new Map() }, [response, ...token]);
  return reading(plan, (body, reader) => reader.texts(body)[0] ?? emptyOf(response));
}

function reading(plan: Plan | undefined, read: (plan: Plan, reader: Reader) => string): ReadShown | undefined {
  if (!plan) return undefined;
  return (bytes) => {
    const reader = new Reader(bytes);
    try {
      return new Shown(read(plan, reader), reader.beside);
    } catch {
      return undefined;
    }
  };
}

/** Reads the value at the reader's place, of a message that ends there. Undefined for one that is not shown. */
type ReadText = (reader: Reader, end: number) => string | undefined;

interface Member {
  /** Among those that are shown; -1 for one that is not. */
  readonly place: number;
  readonly fieldKind: DescField["fieldKind"];
  readonly read: ReadText;
}

/** How a message is read. */
interface Plan {
  /** By the tags that they have on the wire. */
  readonly members: ReadonlyMap<number, Member>;
  /** What stands before the value of each that is shown, when no other is shown before it. */
  readonly first: readonly string[];
  /** What stands there otherwise. */
  readonly later: readonly string[];
  /** Their texts where they were not sent. */
  readonly absent: readonly (string | undefined)[];
  readonly lists: readonly number[];
}

interface Around {
  readonly beside: readonly DescField[];
  /** Undefined for a message that is not done, which holds itself. */
  readonly plans: Map<DescMessage, Plan | undefined>;
}

/** Undefined for a message that may have what the library has to read. */
function planOf(desc: DescMessage, around: Around, fields = desc.fields): Plan | undefined {
  const { beside, plans } = around;
  if (plans.has(desc)) return plans.get(desc);
  plans.set(desc, undefined);
  const members = new Map<number, Member>();
  const first: string[] = [];
  const later: string[] = [];
  const absent: (string | undefined)[] = [];
  const lists: number[] = [];
  for (const field of fields) {
    const isBeside = beside.includes(field);
    const isShown = !isBeside && headerOf(field) === "";
    const type = isShown ? typeOf(field, around) : hiddenType(field, isBeside);
    if (!type) return undefined;
    const place = isShown ? first.length : -1;
    const { fieldKind, number, jsonName } = field;
    members.set((number << 3) | type.wire, { place, fieldKind, read: type.read });
    if (place < 0) continue;
    first.push(`{${JSON.stringify(jsonName)}:`);
    later.push(`,${JSON.stringify(jsonName)}:`);
    absent.push(type.absent);
    if (fieldKind === "list") lists.push(place);
  }
  const plan = { members, first, later, absent, lists };
  plans.set(desc, plan);
  return plan;
}

class Reader extends WireReader {
  readonly beside: Record<string, string> = {};

  message(plan: Plan, end = this.bytes.length): string {
    const texts = this.texts(plan, end);
    let text = "";
    for (let i = 0; i < texts.length; i++) {
      if (texts[i] !== undefined) text += (text === "" ? plan.first[i] : plan.later[i]) + (texts[i] as string);
    }
    return text === "" ? "{}" : `${text}}`;
  }

  /** The texts of the members that are shown. */
  texts({ members, absent, lists }: Plan, end = this.bytes.length): (string | undefined)[] {
    const texts = absent.slice();
    while (this.at < end) {
      const member = members.get(this.varint(end));
      if (!member) throw new Error("a field that is not known, or is encoded in another way");
      const { place, fieldKind } = member;
      const text = member.read(this, end);
      if (place < 0) continue;
      const before = texts[place];
      if (fieldKind === "list") texts[place] = before === "" ? text : `${before},${text}`;
      else if (fieldKind === "message" && before !== undefined) throw new Error("a message in parts");
      else texts[place] = text;
    }
    for (const place of lists) texts[place] = `[${texts[place]}]`;
    return texts;
  }
}

/** How the values of a field are encoded and read. */
interface Type {
  readonly wire: number;
  readonly read: ReadText;
  /** The text of a field that was not sent; of a list, what stands in its brackets. */
  readonly absent: string | undefined;
}

const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** Of a field that is no member. It has to be right all the same. */
function hiddenType({ fieldKind, scalar, oneof, localName }: DescField, isBeside: boolean): Type | undefined {
  if (fieldKind !== "scalar" || scalar !== ScalarType.STRING || oneof) return undefined;
  const read: ReadText = (reader, end) => {
    if (isBeside) reader.beside[localName] = reader.string(end);
    else reader.skipString(end);
    return undefined;
  };
  return { wire: LENGTH_DELIMITED, read, absent: undefined };
}

function typeOf(field: DescField, around: Around): Type | undefined {
  const { fieldKind, presence, oneof } = field;
  if (oneof || fieldKind === "map") return undefined;
  const isImplicit = presence === FeatureSet_FieldPresence.IMPLICIT;
  const type = field.message
    ? messageType(field.message, around)
    : field.enum
      ? enumType(field, isImplicit)
      : scalarType(field.scalar);
  if (fieldKind !== "list") return type && { ...type, absent: isImplicit ? type.absent : undefined };
  // Numbers are packed in lists.
  return type?.wire === LENGTH_DELIMITED ? { ...type, absent: "" } : undefined;
}

function messageType(desc: DescMessage, around: Around): Type | undefined {
  const absent = undefined;
  if (desc.typeName === TimestampSchema.typeName) {
    const read: ReadText = (reader, end) =>
      JSON.stringify(formatTimestamp(fromBinary(TimestampSchema, reader.slice(end))));
    return { wire: LENGTH_DELIMITED, read, absent };
  }
  const plan = desc.typeName.startsWith("google.protobuf.") ? undefined : planOf(desc, around);
  const read = (reader: Reader, end: number) => plan && reader.message(plan, reader.lengthDelimited(end));
  return plan && { wire: LENGTH_DELIMITED, read, absent };
}

function enumType({ enum: desc }: DescField, isImplicit: boolean): Type | undefined {
  if (!desc?.open) return undefined;
  const texts = enumTexts(desc);
  const read: ReadText = (reader, end) => {
    const number = reader.varint(end);
    const text = texts.get(number);
    if (text === undefined && !(number === 0 && isImplicit)) throw new Error("a value that is not known");
    return text;
  };
  return { wire: VARINT, read, absent: texts.get(0) };
}

function scalarType(scalar: ScalarType | undefined): Type | undefined {
  const upTo =
    (max: number): ReadText =>
    (reader, end) => {
      const number = reader.varint(end);
      if (number > max) throw new Error("a number that is negative or very large");
      return `${number}`;
    };
  switch (scalar) {
    case ScalarType.STRING:
      return { wire: LENGTH_DELIMITED, read: (reader, end) => reader.jsonString(end), absent: '""' };
    case ScalarType.BOOL:
      return { wire: VARINT, read: (reader, end) => (reader.varint(end) === 0 ? "false" : "true"), absent: "false" };
    case ScalarType.INT32:
      return { wire: VARINT, read: upTo(2 ** 31 - 1), absent: "0" };
    case ScalarType.UINT32:
      return { wire: VARINT, read: upTo(2 ** 32 - 1), absent: "0" };
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return { wire: VARINT, read: upTo(Number.MAX_SAFE_INTEGER), absent: "0" };
    default:
      return undefined;
  }
}
