import { globSync } from "node:fs";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";

const root = join(import.meta.dirname, "../..");
const modules: readonly Record<string, { readonly kind?: string }>[] = await Promise.all(
  globSync("proto/gen/petstore/**/*_service_pb.ts", { cwd: root }).map((path) => import(join(root, path))),
);

/** Every service of the contract, internal ones included, ordered by name. */
export const contractServices = modules
  .flatMap((module) => Object.values(module))
  .filter((one): one is DescService => one.kind === "service")
  .toSorted((a, b) => (a.typeName < b.typeName ? -1 : 1));
