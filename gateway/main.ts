/** `node gateway/main.ts` runs the gateway. */
import "@petstore/runtime/compile-cache";
import "@petstore/runtime/without-undici";
import { runProcess } from "@petstore/runtime/lifecycle";
import { gatewayConfig, gatewayWarnings } from "./config.ts";

await runProcess(async (stack) => {
  const config = gatewayConfig(process.env);
  const { serve } = await import("./serve.ts");
  const running = await serve(config, stack);
  for (const { text } of gatewayWarnings(process.env)) running.log.warn(text);
  return running;
}, process.env);
