/** For `test.skipIf(...)`: only root can mount a small disk, and only Linux has tmpfs. The reporter says so. */
export const smallDiskMissing = process.platform !== "linux" || process.getuid?.() !== 0;
