/** `npm start`: runs the whole petstore on this machine until Ctrl-C, in five processes or, with --single-process, in one. */
import { ConfigError } from "@petstore/runtime/environment";
import { asksForOneProcess } from "./config.ts";
import { paint, say } from "./screen.ts";

try {
  if (asksForOneProcess(process.argv.slice(2), process.env)) {
    await import("@petstore/runtime/compile-cache");
    const { runProcess } = await import("@petstore/runtime/lifecycle");
    const { openPetstore } = await import("./single-process.ts");
    await runProcess(openPetstore, process.env);
  } else await (await import("./launch.ts")).launch();
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  say(`${paint("red", "The petstore can't start.")} ${error.message}`);
  process.exitCode = 1;
}
