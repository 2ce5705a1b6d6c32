/** In a file of its own, because the browser's driver takes a second to load. */
import { findProgram } from "./programs.ts";

export const chromiumProgram = findProgram("chromium", {
  others: ["/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
});

/** For `test.skipIf(...)`: the reporter mentions it, and with CI=true the run fails before it starts. */
export const chromiumMissing = chromiumProgram === undefined;
