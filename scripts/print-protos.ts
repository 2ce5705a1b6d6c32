/**
 * Writes `buf/validate/validate.proto` from the descriptor inside @bufbuild/protovalidate, so that buf can resolve the
 * import without the network and without a third-party file in the repository.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  ScalarType,
} from "@bufbuild/protobuf";
import { FieldDescriptorProto_Label as Label } from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

const indent = (lines: string[]): string[] => lines.map((line) => `  ${line}`);
const block = (head: string, lines: string[]): string[] => [`${head} {`, ...indent(lines), "}"];

function typeOf(field: DescField | DescExtension): string {
  const named = field.message ?? field.enum;
  if (field.fieldKind === "map") throw new Error(`${field.toString()}: map fields are not printed`);
  return named ? `.${named.typeName}` : ScalarType[field.scalar as ScalarType].toLowerCase();
}

function labelOf(field: DescField | DescExtension): string {
  if (field.oneof && !field.proto.proto3Optional) return "";
  if (field.proto.label === Label.REPEATED) return "repeated ";
  return field.proto.label === Label.REQUIRED ? "required " : "optional ";
}

const fieldLine = (field: DescField | DescExtension): string =>
  `${labelOf(field)}${typeOf(field)} ${field.proto.name} = ${field.number};`;

function enumLines(desc: DescEnum): string[] {
  const alias = desc.proto.options?.allowAlias ? ["option allow_alias = true;"] : [];
  return block(`enum ${desc.name}`, [...alias, ...desc.values.map((value) => `${value.name} = ${value.number};`)]);
}

const extensionLines = (desc: DescExtension): string[] => block(`extend .${desc.extendee.typeName}`, [fieldLine(desc)]);

function messageLines(desc: DescMessage): string[] {
  const ranges = desc.proto.extensionRange.map(
    ({ start, end }) => `extensions ${start} to ${end > 536_870_911 ? "max" : end - 1};`,
  );
  const members = desc.members.flatMap((member) =>
    member.kind === "oneof" ? block(`oneof ${member.name}`, member.fields.map(fieldLine)) : [fieldLine(member)],
  );
  const nested = [
    ...desc.nestedEnums.flatMap(enumLines),
    ...desc.nestedMessages.flatMap(messageLines),
    ...desc.nestedExtensions.flatMap(extensionLines),
  ];
  return block(`message ${desc.name}`, [...ranges, ...members, ...nested]);
}

const printFile = (file: DescFile): string =>
  [
    `syntax = "${file.proto.syntax || "proto2"}";`,
    `package ${file.proto.package};`,
    ...file.dependencies.map((dependency) => `import "${dependency.name}.proto";`),
    ...file.enums.flatMap(enumLines),
    ...file.messages.flatMap(messageLines),
    ...file.extensions.flatMap(extensionLines),
    "",
  ].join("\n");

const path = join("node_modules/.cache/protos", `${file_buf_validate_validate.name}.proto`);
mkdirSync(dirname(path), { recursive: true });
writeFileSync(path, printFile(file_buf_validate_validate));
