/** Runs one service as a process of its own. */
import type { Running, WaitsFor } from "@petstore/runtime/lifecycle";
import { STARTED } from "../processes/admin.ts";
import { openCommon, pathsOverNetwork } from "../processes/common.ts";
import type { ServiceConfig } from "./config.ts";
import { addCopies } from "./copies.ts";
import { openService } from "./open.ts";

/** Opens a service, ready to take calls; the stack closes it. */
export async function serve(config: ServiceConfig, stack: AsyncDisposableStack, waitsFor: WaitsFor): Promise<Running> {
  const common = await openCommon(config, stack);
  const pathTo = pathsOverNetwork(config, common, stack);
  const service = await openService(config, { ...common, pathTo, waitsFor }, stack);
  common.admin.routes.set("GET /readyz", () => {
    const ready = service.health.isServing();
    return { status: ready ? 200 : 503, body: { status: ready ? "ready" : "not ready" } };
  });
  if (service.file) addCopies(common.admin.routes, [service.file]);
  const url = await service.listen();
  common.admin.routes.set("GET /startupz", () => STARTED);
  return { log: common.log, url };
}
