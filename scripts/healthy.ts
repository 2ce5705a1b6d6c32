/**
 * `node scripts/healthy.ts`: the health check of a container. Asks the process that listens on PORT whether it is ready,
 * and prints what it says. Ends with 0 if it is ready and with 1 if not, after 4 s at the latest.
 */
const address = `http://127.0.0.1:${process.env.PORT || 8080}`;
const basePath = (process.env.HTTP_BASE_PATH ?? "").replace(/\/$/, "");

/** The gateway is ready when all services are; a service, which has no such path, says so by grpc.health.v1. */
async function readiness(): Promise<string> {
  const signal = AbortSignal.timeout(4_000);
  const gateway = await fetch(`${address}${basePath}/readyz`, { signal });
  if (gateway.status !== 404) return gateway.text();
  const headers = { "content-type": "application/json" };
  const service = await fetch(`${address}/grpc.health.v1.Health/Check`, {
    method: "POST",
    headers,
    body: "{}",
    signal,
  });
  return service.text();
}

try {
  const said = await readiness();
  console.log(said);
  process.exitCode = /^\{"status":"(ready|SERVING)"/.test(said) ? 0 : 1;
} catch (error) {
  console.log((error as Error).cause ?? error);
  process.exitCode = 1;
}
