/**
 * Tests that start processes say so in their names, so that the others can be run in seconds. A compiler that is run to
 * its end (execFileSync) may be.
 */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

for (const name of ["spawn", "spawnSync", "exec", "execSync", "execFile", "fork"] as const)
  childProcess[name] = (() => {
    throw new Error(`A unit test starts no process (${name}). One that does is called *.process.test.ts.`);
  }) as never;
syncBuiltinESMExports();
