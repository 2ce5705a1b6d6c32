/** `node services/main.ts pet` runs one service: pet, category, order or inventory. */
import "@petstore/runtime/compile-cache";
import "@petstore/runtime/without-undici";
import { ConfigError } from "@petstore/runtime/environment";
import { runProcess } from "@petstore/runtime/lifecycle";
import { isServiceName, serviceNames } from "../processes/names.ts";
import { serviceConfig, serviceWarnings } from "./config.ts";

await runProcess(async (stack, waitsFor) => {
  const name = process.argv[2];
  if (!isServiceName(name)) throw new ConfigError([`Say which service to run: ${serviceNames.join(", ")}.`]);
  const config = serviceConfig(process.env, name);
  const { serve } = await import("./serve.ts");
  const running = await serve(config, stack, waitsFor);
  for (const { text } of serviceWarnings(process.env)) running.log.warn(text);
  return running;
}, process.env);
