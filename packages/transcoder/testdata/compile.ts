/** Compiles .proto text for a test, with what its annotations need beside it. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileRegistry, type DescEnum, type DescService, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const root = join(import.meta.dirname, "../../..");

/** `files` are names and contents. */
export function compileProtos(files: Readonly<Record<string, string>>): FileRegistry {
  const folder = mkdtempSync(join(tmpdir(), "protos-"));
  try {
    cpSync(join(import.meta.dirname, "../proto"), folder, { recursive: true });
    cpSync(join(root, "node_modules/@protobufs/google/api"), join(folder, "google/api"), { recursive: true });
    cpSync(join(root, "node_modules/.cache/protos"), folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, "buf.yaml"), "version: v2\n");
    const buf = join(root, "node_modules/.bin/buf");
    const set = execFileSync(buf, ["build", "--as-file-descriptor-set", "-o", "-"], { cwd: folder });
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, set));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function serviceOf(registry: FileRegistry, name: string): DescService {
  const service = registry.getService(name);
  if (!service) throw new Error(`no service ${name}`);
  return service;
}

export function enumOf(registry: FileRegistry, name: string): DescEnum {
  const found = registry.getEnum(name);
  if (!found) throw new Error(`no enum ${name}`);
  return found;
}

const compiled = new Map<string, FileRegistry>();

function compileFile(name: string): FileRegistry {
  const known = compiled.get(name);
  if (known) return known;
  const registry = compileProtos({ [name]: readFileSync(join(import.meta.dirname, name), "utf8") });
  compiled.set(name, registry);
  return registry;
}

/** The foreign service of library.proto. */
export const compileLibrary = (): FileRegistry => compileFile("library.proto");

/** The foreign service of news.proto, whose RPCs stream. */
export const compileNews = (): FileRegistry => compileFile("news.proto");
