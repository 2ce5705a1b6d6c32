/** `node gateway/main.ts` runs the gateway. */
import { runProcess } from "@petstore/runtime/lifecycle";
import { gatewayConfig } from "./config.ts";
import { serve } from "./serve.ts";

await runProcess((stack) => serve(gatewayConfig(process.env), stack));
