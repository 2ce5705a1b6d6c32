import type { DescFile } from "@bufbuild/protobuf";

/** Every file that these files are built on, and they themselves. */
export function filesBelow(files: readonly DescFile[]): DescFile[] {
  const found = new Set<DescFile>();
  const visit = (file: DescFile) => {
    if (found.has(file)) return;
    found.add(file);
    file.dependencies.forEach(visit);
  };
  files.forEach(visit);
  return [...found];
}
