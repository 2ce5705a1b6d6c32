/** Scalars and enums as JSON text. */
import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import { type Codec, enumTexts, NULL_VALUE } from "../contract/codec.ts";

/** Writes one value. Values come from a decoded message, so that their JavaScript types are those of the descriptor. */
export type Write = (value: never) => string;

export function scalarWriter(scalar: ScalarType, { writesLongsAsText }: Codec): Write {
  switch (scalar) {
    case ScalarType.STRING:
      return JSON.stringify;
    case ScalarType.BYTES:
      return (value: Uint8Array) => JSON.stringify(Buffer.from(value).toString("base64"));
    case ScalarType.DOUBLE:
      return doubleText;
    case ScalarType.FLOAT:
      return floatText;
    default:
      // Booleans and integers; of a bigint every digit.
      return writesLongsAsText && isLong(scalar) ? (value: bigint) => `"${value}"` : String;
  }
}

export const isLong = (scalar: ScalarType): boolean => ScalarType[scalar].endsWith("64");

/** Values that the contract does not know are numbers, as in proto3 JSON. */
export function enumWriter(desc: DescEnum, isItem: boolean, codec: Codec, tellUnknown?: TellUnknown): Write {
  if (desc.typeName === NULL_VALUE) return () => "null";
  if (codec.enumNumbers) return String;
  const texts = enumTexts(desc, isItem, codec);
  return (value: number) => {
    const text = texts.get(value);
    if (text === undefined) tellUnknown?.(desc, value);
    return text ?? `${value}`;
  };
}

/** JSON has no NaN and no infinities: as in proto3 JSON they are the strings "NaN", "Infinity" and "-Infinity". */
export function doubleText(value: number): string {
  if (!Number.isFinite(value)) return JSON.stringify(String(value));
  return Object.is(value, -0) ? "-0" : String(value);
}

/** The shortest number that is read as the same value of 32 bits: 0.1 and not 0.10000000149011612, which it is in 64 bits. */
export function floatText(value: number): string {
  if (!Number.isFinite(value) || Number.isSafeInteger(value)) return doubleText(value);
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  // Nine digits tell all values of 32 bits apart.
  return String(Number(value.toPrecision(9)));
}

/** Called when an enum value is written that the contract does not know: a service is newer than this server. */
export type TellUnknown = (desc: DescEnum, value: number) => void;

/** Most values that are logged. A faulty service can send any number. */
const MAX_LOGGED = 100;

/** Logs each value once. */
export function logUnknownValues(log: { warn(about: object, message: string): void }): TellUnknown {
  const logged = new Set<string>();
  return ({ typeName }, value) => {
    const name = `${typeName} ${value}`;
    if (logged.has(name) || logged.size === MAX_LOGGED) return;
    logged.add(name);
    log.warn({ enum: typeName, value }, "an enum value of a newer service is answered as its number");
  };
}
