/** Details of errors as google.protobuf.Any, the form in which gRPC carries them. */
import { create } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";

type Detail = ConnectError["details"][number];

export const fromAny = ({ typeUrl, value }: Any): Detail => ({
  type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
  value,
});

export const toAny = (detail: Detail): Any =>
  "desc" in detail
    ? anyPack(detail.desc, create(detail.desc, detail.value))
    : create(AnySchema, { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value });
