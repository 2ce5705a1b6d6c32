/**
 * Lets unit tests start no processes: those that do have it in their names, so that the others run in seconds. Running a
 * compiler to its end (execFileSync) is allowed.
 */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

for (const name of ["spawn", "spawnSync", "exec", "execSync", "execFile", "fork"] as const)
  childProcess[name] = (() => {
    throw new Error(`A unit test starts no process (${name}). One that does is called *.process.test.ts.`);
  }) as never;
syncBuiltinESMExports();
