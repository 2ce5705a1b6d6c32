/** For `test.skipIf(...)`: mounting a small disk needs root, and tmpfs of Linux. The reporter mentions it. */
export const smallDiskMissing = process.platform !== "linux" || process.getuid?.() !== 0;
