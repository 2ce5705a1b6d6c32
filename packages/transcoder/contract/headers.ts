/** Which fields of a message travel as headers, and by what names. */
import type { DescField } from "@bufbuild/protobuf";
import { headerOf } from "./fields.ts";
import type { HeaderField } from "./operation.ts";

/** Names of header fields that mean something here, however a contract spells them. */
const STANDARD = new Map(
  ["ETag", "If-Match", "If-None-Match", "Idempotency-Key"].map((name) => [name.toLowerCase(), name]),
);

/** A name of RFC 9110 (5.1), of no header that says how the message itself is to be read. */
const IS_OWN =
  /^(?!(?:connection|content-(?:encoding|length|type)|keep-alive|trailer|transfer-encoding|upgrade)$)[\w!#$%&'*+.^`|~-]+$/i;

/** @throws Error when a field can't be a header */
export const headersIn = (fields: readonly DescField[]): HeaderField[] =>
  fields.flatMap((field) => {
    const name = headerOf(field);
    if (name === "") return [];
    if (field.fieldKind !== "scalar" || field.oneof) throw new Error(`${field.name} can't be a header`);
    if (!IS_OWN.test(name)) throw new Error(`${field.name} can't be the header "${name}"`);
    return [{ name: STANDARD.get(name.toLowerCase()) ?? name, field }];
  });
