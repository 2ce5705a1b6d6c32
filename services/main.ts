/** `node services/main.ts pet` runs one service: pet, category, order or inventory. */

import { runProcess } from "@petstore/runtime/lifecycle";
import { ConfigError, isServiceName, processNames, serviceConfig } from "../config.ts";
import { serve } from "./serve.ts";

await runProcess(async (stack, waitsFor) => {
  const name = process.argv[2];
  if (!isServiceName(name))
    throw new ConfigError([`Say which service to run: ${processNames.filter(isServiceName).join(", ")}.`]);
  return serve(serviceConfig(process.env, name), stack, waitsFor);
});
