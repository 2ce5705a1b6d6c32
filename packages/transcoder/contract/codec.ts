/** The two ways in which values are written as JSON, and all that differs between them. */
import { createRegistry, type Registry } from "@bufbuild/protobuf";

/**
 * - `proto3` is proto3 JSON: integers of 64 bits are strings in answers, enums go by their full names, null means unset.
 * - `exact` has no value twice: every integer is a number, enums go by short names in lower case, null is an error.
 *
 * In both an integer of a request may be a JSON number of any size and loses no digit, and a member twice is an error.
 */
export type CodecName = "proto3" | "exact";

export interface Codec {
  /** Enums go by their names in the contract, or by their numbers; otherwise by short names, and "unspecified" is absent. */
  readonly hasFullEnumNames: boolean;
  /** Answers write integers of 64 bits as strings. */
  readonly writesLongsAsText: boolean;
  /** Requests may have numbers in strings, bytes in any form of base64, U+0000, and no body where it is the whole message. */
  readonly isLenient: boolean;
  /** Null in a request leaves a field unset; an answer writes it for a message that is unset. */
  readonly nullIsUnset: boolean;
  /** Answers leave out zeros of fields without presence, empty lists and maps, and null. */
  readonly omitUnpopulated: boolean;
  /** Answers name fields as the contract does: `page_size`. */
  readonly originalNames: boolean;
  /** Answers write enums as numbers. */
  readonly enumNumbers: boolean;
  /** The types that a google.protobuf.Any may hold, and the extensions of proto2. */
  readonly registry: () => Registry;
}

export interface CodecOptions {
  readonly codec?: CodecName | undefined;
  readonly omitUnpopulated?: boolean | undefined;
  readonly originalNames?: boolean | undefined;
  readonly enumNumbers?: boolean | undefined;
  readonly registry?: (() => Registry) | undefined;
}

/** A codec; `proto3` where nothing else is said. */
export function createCodec(given: CodecOptions): Codec {
  const isProto3 = given.codec !== "exact";
  return {
    hasFullEnumNames: isProto3,
    writesLongsAsText: isProto3,
    isLenient: isProto3,
    nullIsUnset: isProto3,
    omitUnpopulated: given.omitUnpopulated ?? false,
    originalNames: given.originalNames ?? false,
    enumNumbers: given.enumNumbers ?? false,
    registry: given.registry ?? createRegistry,
  };
}

export const EXACT: Codec = createCodec({ codec: "exact" });
