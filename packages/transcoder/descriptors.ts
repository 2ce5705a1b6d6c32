import type { DescFile } from "@bufbuild/protobuf";

/** Every file that these files are built on, and they themselves. Not by recursion: how deep imports go is up to others. */
export function filesBelow(files: readonly DescFile[]): DescFile[] {
  const found = new Set<DescFile>();
  const left = files.toReversed();
  for (let file = left.pop(); file; file = left.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    left.push(...file.dependencies.toReversed());
  }
  return [...found];
}
