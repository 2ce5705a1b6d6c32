/** The comments of a contract, from descriptors that have them: those of a descriptor set, and not those in generated code. */
import type { DescFile } from "@bufbuild/protobuf";
import type { DescriptorProto, EnumDescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt";

/** The text above each message, field, enum, value, service and RPC, or else the one behind it, by full name. */
export function commentsOf(files: Iterable<DescFile>): Readonly<Record<string, string>> {
  const found: [name: string, text: string][] = [];
  for (const { proto } of files) {
    const texts = new Map<string, string>();
    for (const { path, leadingComments, trailingComments } of proto.sourceCodeInfo?.location ?? []) {
      const text = commentText(leadingComments || trailingComments);
      if (text !== "") texts.set(path.join(), text);
    }
    if (texts.size === 0) continue;
    for (const [path, name] of elementsOf(proto)) {
      const text = texts.get(path);
      if (text !== undefined) found.push([name, text]);
    }
  }
  return Object.fromEntries(found);
}

/** Each element's place in its file, by the field numbers of descriptor.proto, and its full name. */
function* elementsOf(file: FileDescriptorProto): Iterable<[path: string, name: string]> {
  const within = file.package === "" ? "" : `${file.package}.`;
  for (const [i, message] of file.messageType.entries()) yield* inMessage(message, `4,${i}`, within);
  for (const [i, one] of file.enumType.entries()) yield* inEnum(one, `5,${i}`, within);
  for (const [i, service] of file.service.entries()) {
    const name = within + service.name;
    yield [`6,${i}`, name];
    for (const [j, method] of service.method.entries()) yield [`6,${i},2,${j}`, `${name}.${method.name}`];
  }
}

function* inMessage(message: DescriptorProto, path: string, within: string): Iterable<[path: string, name: string]> {
  const name = within + message.name;
  yield [path, name];
  for (const [i, field] of message.field.entries()) yield [`${path},2,${i}`, `${name}.${field.name}`];
  for (const [i, nested] of message.nestedType.entries()) yield* inMessage(nested, `${path},3,${i}`, `${name}.`);
  for (const [i, one] of message.enumType.entries()) yield* inEnum(one, `${path},4,${i}`, `${name}.`);
}

function* inEnum(one: EnumDescriptorProto, path: string, within: string): Iterable<[path: string, name: string]> {
  yield [path, within + one.name];
  for (const [i, value] of one.value.entries()) yield [`${path},2,${i}`, `${within}${one.name}.${value.name}`];
}

/**
 * A comment as Markdown. What is for the owners of the contract alone is left out: `(-- ... --)` (AIP-192), and lines that tell
 * buf's linter something. `[Book][acme.v1.Book]`, which is a link nowhere but in Google's pages, is "Book".
 */
export function commentText(comment: string): string {
  const lines = withoutInternal(comment)
    .split("\n")
    .map((line) => line.replace(/^ /, "").trimEnd())
    .filter((line) => !line.trimStart().startsWith("buf:lint:"));
  const parts: string[] = [];
  let inFence = false;
  let isBelow = false;
  for (const line of lines) {
    const isFence = /^\s*(?:```[^`]*|~~~.*)$/.test(line);
    // Code, lists, tables and headings keep their lines; the lines of a paragraph are one.
    const stands = isBelow || inFence || isFence || OWN_LINE.test(line) || line === "";
    parts.push(stands ? `\n${line}` : ` ${line.trimStart()}`);
    if (isFence) inFence = !inFence;
    isBelow = line === "" || (isFence && !inFence) || HEADING.test(line);
  }
  return parts
    .join("")
    .replaceAll(/\n{3,}/g, "\n\n")
    .replaceAll(
      /(?<![\w\]])\[([^[\]]*)\]\[((?:[A-Za-z_][\w.]*)?)\]/g,
      (_, shown: string, name: string) => shown || name,
    )
    .trim();
}

const OWN_LINE = /^(?: {4}|\t| {0,3}(?:[-*+|#>]|\d{1,3}[.)] ))/;
const HEADING = /^ {0,3}#/;

function withoutInternal(comment: string): string {
  let kept = "";
  let from = 0;
  for (;;) {
    const start = comment.indexOf("(--", from);
    const end = start < 0 ? -1 : comment.indexOf("--)", start + 3);
    if (end < 0) return kept + comment.slice(from);
    kept += comment.slice(from, start);
    from = end + 3;
  }
}
