/** A contract that comes from outside: files of descriptors, in any order, or a file with a set of them, become services. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { create, createFileRegistry, type FileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
} from "@bufbuild/protobuf/wkt";
import { WELL_KNOWN_FILES } from "../contract/well-known.ts";
import { filesBelow } from "../descriptors.ts";
import { file_google_api_annotations } from "../gen/google/api/annotations_pb.ts";
import { file_google_api_httpbody } from "../gen/google/api/httpbody_pb.ts";
import { file_google_rpc_error_details } from "../gen/google/rpc/error_details_pb.ts";
import { file_transcoder_v1_annotations } from "../gen/transcoder/v1/annotations_pb.ts";

export type Contract = ReturnType<typeof contractOf>;

/** The contract can't be used. The message says what is wrong with it, and what to do. */
export class BrokenContract extends Error {
  override readonly name = "BrokenContract";
}

/** What every contract may import without bringing it along. */
const known: ReadonlyMap<string, FileDescriptorProto> = new Map(
  filesBelow([
    ...WELL_KNOWN_FILES,
    file_google_protobuf_api,
    file_google_protobuf_descriptor,
    file_google_api_annotations,
    file_google_api_httpbody,
    file_google_rpc_error_details,
    file_transcoder_v1_annotations,
  ]).map(({ proto }) => [proto.name, proto]),
);

export const isKnown = (name: string): boolean => known.has(name);

/**
 * The contract that files of descriptors make up.
 *
 * @throws BrokenContract where an import is missing, files import each other, or protobuf-es refuses a file
 */
export function contractOf(files: Iterable<FileDescriptorProto>) {
  const set = create(FileDescriptorSetSchema, { file: inOrder(files) });
  let registry: FileRegistry;
  try {
    registry = createFileRegistry(set);
  } catch (error) {
    throw broken("The descriptors don't fit together", error);
  }
  return {
    /** In the order of the names of their files. */
    services: [...registry].filter((one) => one.kind === "service"),
    /** The same for the same files, in whatever order they came. */
    fingerprint: createHash("sha256").update(toBinary(FileDescriptorSetSchema, set)).digest("hex"),
  };
}

/**
 * A contract from a file: what `buf build -o` and `protoc --include_imports --descriptor_set_out` write.
 *
 * @throws BrokenContract where the file can't be read or is no set of descriptors with all that it imports
 */
export async function readDescriptorSet(path: string): Promise<Contract> {
  const bytes = await readFile(path).catch((error) => {
    throw broken(`${path} can't be read`, error);
  });
  const advice = `Make one with "buf build -o ${path}" (its name has to end with .binpb) or "protoc --include_imports --descriptor_set_out=${path}".`;
  let set: FileDescriptorSet;
  try {
    set = fromBinary(FileDescriptorSetSchema, bytes);
  } catch {
    throw new BrokenContract(`${path} is no descriptor set. ${advice}`);
  }
  // Many bytes that are something else can be read as messages without a known field.
  if (set.file.length === 0 || set.file.some(({ name }) => name === ""))
    throw new BrokenContract(`${path} is no descriptor set: it has no files with names. ${advice}`);
  return contractOf(set.file);
}

/** One file from its bytes. @throws BrokenContract where they are none */
export function readFileDescriptor(bytes: Uint8Array, origin: string): FileDescriptorProto {
  try {
    return fromBinary(FileDescriptorProtoSchema, bytes);
  } catch (error) {
    throw broken(`${origin} is no FileDescriptorProto`, error);
  }
}

const broken = (trouble: string, error: unknown) => new BrokenContract(`${trouble}: ${(error as Error).message}`);

/** Each file behind all that it imports. Not by recursion: how deep imports go is up to others. */
function inOrder(files: Iterable<FileDescriptorProto>): FileDescriptorProto[] {
  const byName = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const given = new Map(byName.map((file) => [file.name, file]));
  const done = new Set<string>();
  const open = new Set<string>();
  const sorted: FileDescriptorProto[] = [];
  for (const first of given.values()) {
    const path: { readonly file: FileDescriptorProto; next: number }[] = [];
    const enter = (file: FileDescriptorProto) => {
      open.add(file.name);
      path.push({ file, next: 0 });
    };
    if (!done.has(first.name)) enter(first);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const { file } = top;
      const name = file.dependency[top.next++];
      if (name === undefined) {
        open.delete(file.name);
        done.add(file.name);
        sorted.push(file);
        path.pop();
        continue;
      }
      if (done.has(name)) continue;
      if (open.has(name)) throw new BrokenContract(`${name} imports itself, by way of ${file.name}.`);
      const imported = given.get(name) ?? known.get(name);
      if (!imported)
        throw new BrokenContract(
          `${name} is missing, which ${file.name} imports. Make the set with its imports: "buf build -o set.binpb", or protoc with --include_imports.`,
        );
      enter(imported);
    }
  }
  return sorted;
}
