/**
 * A protoc plugin: writes the comments of the schema as `{full name: text}`, because the descriptors in generated code
 * have none. Names are those of protobuf, such as "petstore.pet.v1.Pet.name".
 */
import type { DescFile } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { createEcmaScriptPlugin, getComments, runNodeJs } from "@bufbuild/protoplugin";

type Commented = Parameters<typeof getComments>[0];

function* elements(file: DescFile): Iterable<[name: string, element: Commented]> {
  for (const type of nestedTypes(file)) {
    yield [type.typeName, type];
    if (type.kind === "message") for (const field of type.fields) yield [`${type.typeName}.${field.name}`, field];
    if (type.kind === "service") for (const method of type.methods) yield [`${type.typeName}.${method.name}`, method];
    if (type.kind === "enum") for (const value of type.values) yield [`${type.typeName}.${value.name}`, value];
  }
}

/** The comment as paragraphs: protoc keeps the space after each `//` and the line breaks within a paragraph. */
function textOf(element: Commented): string {
  const lines = (getComments(element).leading ?? "").split("\n").map((line) => line.trim());
  return lines
    .join("\n")
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.replaceAll("\n", " ").trim())
    .filter((paragraph) => paragraph !== "")
    .join("\n\n");
}

function parseOptions(given: { key: string; value: string }[]): { package: string } {
  const option = given.find(({ key }) => key === "package");
  if (option === undefined) throw new Error('option "package" is missing: the comments of which package?');
  return { package: option.value };
}

runNodeJs(
  createEcmaScriptPlugin({
    name: "protoc-gen-docs",
    version: "1",
    parseOptions,
    generateTs(schema) {
      const own = schema.files.filter((file) => `${file.proto.package}.`.startsWith(`${schema.options.package}.`));
      // buf runs the plugin once for each input, and only one of them has comments to write.
      if (own.length === 0) return;
      const texts = own.flatMap((file) => [...elements(file)].map(([name, element]) => [name, textOf(element)]));
      const docs = Object.fromEntries(texts.filter(([, text]) => text !== ""));
      const output = schema.generateFile("docs.ts");
      output.print("/** The comments of the schema by the full name of what they describe. */");
      output.print("export const docs: Readonly<Record<string, string>> = ", JSON.stringify(docs, null, 2), ";");
    },
  }),
);
