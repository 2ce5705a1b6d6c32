/** A disk that is soon full. */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** For `test.skipIf(...)`: mounting a small disk needs root, and tmpfs of Linux. The reporter mentions it. */
export const smallDiskMissing = process.platform !== "linux" || process.getuid?.() !== 0;

/** Whatever uses it has to have ended before it is disposed of. */
export async function mountSmallDisk(mebibytes: number) {
  const dir = await mkdtemp(join(tmpdir(), "petstore-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", dir]);
  return {
    dir,
    async [Symbol.asyncDispose]() {
      execFileSync("umount", [dir]);
      await rm(dir, { recursive: true });
    },
  };
}
