/**
 * The whole petstore in one process: the same services behind the same ports, on the same data. The gateway and the services
 * call each other in memory.
 */
import { ConfigError } from "@petstore/runtime/environment";
import { type Running, STOP_LIMIT_MS, type WaitsFor } from "@petstore/runtime/lifecycle";
import { gatewayConfig } from "../gateway/config.ts";
import { openGateway } from "../gateway/serve.ts";
import { openCommon } from "../processes/common.ts";
import { processNames, type ServiceName, serviceNames } from "../processes/names.ts";
import { serviceConfig } from "../services/config.ts";
import { addCopies } from "../services/copies.ts";
import { type OpenService, pathsInMemory, servicesOfOneProcess } from "../services/open.ts";
import { prepare } from "./prepare.ts";
import { say, welcome } from "./screen.ts";

const startedAt = performance.now();

/** Opens the petstore; the stack closes it. `startedBy` is the process id of npm. */
export async function openPetstore(
  startedBy: number | undefined,
  stack: AsyncDisposableStack,
  waitsFor: WaitsFor,
): Promise<Running> {
  // The end by a signal, as npm would have passed it on.
  const launcher = await prepare(startedBy, () => process.kill(process.pid, "SIGTERM"), processNames.length);
  const { environment, lameDuckMs, replicas } = launcher;
  if (replicas.size > 0)
    throw new ConfigError(["REPLICAS asks for several processes: leave it out, or start without --single-process."]);
  const config = gatewayConfig(environment);
  const settings = { ...config.settings, ...serviceConfig(environment, "pet").settings };
  const common = await openCommon({ ...config, settings, instance: "petstore" }, stack);
  const services = new Map<ServiceName, OpenService>();
  const parts = { ...common, pathTo: pathsInMemory({ services }, common), waitsFor };
  const openService = servicesOfOneProcess();
  const open = async (name: ServiceName) => {
    const service = await openService(serviceConfig(environment, name), parts, stack);
    services.set(name, service);
    return { name, kind: name, service };
  };
  const opened = await Promise.all(serviceNames.map(open));
  const files = opened.flatMap(({ service }) => service.file ?? []);
  if (files.length > 0) addCopies(common.admin.routes, files);
  // Only now: each calls the others as soon as it listens.
  const listening = opened.map(async ({ service, ...named }) => ({ ...named, url: await service.listen() }));
  const endpoints = await Promise.all(listening);
  const url = await openGateway(config, parts, stack);
  const all = [{ name: "gateway", kind: "gateway", url }, ...endpoints];
  say(welcome(all, (performance.now() - startedAt) / 1000, launcher));
  return { log: common.log, url, stopLimitMs: lameDuckMs + STOP_LIMIT_MS };
}
