/** `npm start`: runs the whole petstore on this machine until Ctrl-C, in five processes or, with --single-process, in one. */
import { ConfigError } from "@petstore/runtime/environment";
import { launcherArguments } from "./config.ts";
import { paint, say } from "./screen.ts";

try {
  const { singleProcess, startedBy } = launcherArguments(process.argv.slice(2), process.env);
  if (singleProcess) {
    await import("@petstore/runtime/compile-cache");
    const { runProcess } = await import("@petstore/runtime/lifecycle");
    const { openPetstore } = await import("./single-process.ts");
    await runProcess((stack, waitsFor) => openPetstore(startedBy, stack, waitsFor), process.env);
  } else await (await import("./launch.ts")).launch(startedBy);
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  say(`${paint("red", "The petstore can't start.")} ${error.message}`);
  process.exitCode = 1;
}
