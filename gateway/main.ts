/** `node gateway/main.ts` runs the gateway. */
import "@petstore/runtime/compile-cache";
import "@petstore/runtime/without-undici";
import { runProcess } from "@petstore/runtime/lifecycle";
import { gatewayConfig } from "./config.ts";

await runProcess(async (stack) => {
  const config = gatewayConfig(process.env);
  const { serve } = await import("./serve.ts");
  return serve(config, stack);
});
