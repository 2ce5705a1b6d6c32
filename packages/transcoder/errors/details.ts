/** The details of an error in proto3 JSON, as they stand in a google.rpc.Status. */
import { create, createRegistry, type DescFile, type Registry, toBinary, toJson } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ConnectError } from "@connectrpc/connect";
import { WELL_KNOWN_FILES } from "../contract/codec.ts";
import { file_google_rpc_error_details } from "../gen/google/rpc/error_details_pb.ts";

/** One detail: `@type`, and the members of the message. */
export type DetailJson = Readonly<Record<string, unknown>>;

/** The types that are written member by member: those of the contract, those of google.rpc, and the well-known ones. */
export const detailTypes = (files: readonly DescFile[]): Registry => createRegistry(...KNOWN, ...files);

const KNOWN = [...WELL_KNOWN_FILES, file_google_rpc_error_details, ViolationsSchema];

/**
 * Writes a detail. One of a type that the registry lacks, or that does not hold what its type says, is kept as it came:
 * `{"@type": "type.googleapis.com/acme.Hint", "value": "CgFh"}`, the bytes in base64.
 */
export function detailJson(detail: ConnectError["details"][number], registry: Registry): DetailJson {
  const any = anyOf(detail);
  try {
    return toJson(AnySchema, any, { registry }) as DetailJson;
  } catch {
    return { "@type": any.typeUrl, value: Buffer.from(any.value).toString("base64") };
  }
}

function anyOf(detail: ConnectError["details"][number]): Any {
  const [type, value] =
    "desc" in detail
      ? [detail.desc.typeName, toBinary(detail.desc, create(detail.desc, detail.value))]
      : [detail.type, detail.value];
  return create(AnySchema, { typeUrl: `type.googleapis.com/${type}`, value });
}
