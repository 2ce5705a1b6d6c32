/** A contract from a file: what `buf build -o` and `protoc --include_imports --descriptor_set_out` write. */
import { readFile } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { BrokenContract, type Contract, contractOf } from "./contract.ts";

/** @throws BrokenContract where the file can't be read or is no set of descriptors with all that it imports */
export async function readDescriptorSet(path: string): Promise<Contract> {
  return contractOf(parse(path, await bytesOf(path)).file);
}

async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new BrokenContract(`${path} can't be read: ${(error as Error).message}`);
  }
}

function parse(path: string, bytes: Uint8Array): FileDescriptorSet {
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
  return set;
}
