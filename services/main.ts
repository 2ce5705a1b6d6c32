/** `node services/main.ts pet` runs one service: pet, category, order or inventory. */

import { ConfigError } from "@petstore/runtime/environment";
import { runProcess } from "@petstore/runtime/lifecycle";
import { isServiceName, processNames } from "../config.ts";
import { serviceConfig } from "./config.ts";
import { serve } from "./serve.ts";

await runProcess(async (stack, waitsFor) => {
  const name = process.argv[2];
  if (!isServiceName(name))
    throw new ConfigError([`Say which service to run: ${processNames.filter(isServiceName).join(", ")}.`]);
  return serve(serviceConfig(process.env, name), stack, waitsFor);
});
