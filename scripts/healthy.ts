/**
 * `node scripts/healthy.ts`: the health check of a container. Asks the process that listens on PORT whether it is ready,
 * and prints what it says. Ends with 0 if it is ready and with 1 if not, after 4 s at the latest.
 */
import { once } from "node:events";
import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { text } from "node:stream/consumers";

const request = process.env.TLS_CERT?.trim() ? overHttps : overHttp;
const place = {
  host: "127.0.0.1",
  port: process.env.PORT || 8080,
  // Nothing is told to whoever answers here, and the certificate is for the names that others call this process by.
  rejectUnauthorized: false,
  signal: AbortSignal.timeout(4_000),
};
const basePath = (process.env.HTTP_BASE_PATH ?? "").replace(/\/$/, "");

async function ask(method: string, path: string, body = ""): Promise<{ status: number | undefined; said: string }> {
  const headers = { "content-type": "application/json", connection: "close" };
  const asked = request({ ...place, method, path, headers });
  const [answer] = (await once(asked.end(body), "response")) as [IncomingMessage];
  return { status: answer.statusCode, said: await text(answer) };
}

/** The gateway is ready when all services are; a service, which has no such path, says so by grpc.health.v1. */
async function readiness(): Promise<string> {
  const gateway = await ask("GET", `${basePath}/readyz`);
  if (gateway.status !== 404) return gateway.said;
  return (await ask("POST", "/grpc.health.v1.Health/Check", "{}")).said;
}

try {
  const said = await readiness();
  console.log(said);
  process.exitCode = /^\{"status":"(ready|SERVING)"/.test(said) ? 0 : 1;
} catch (error) {
  console.log((error as Error).cause ?? error);
  process.exitCode = 1;
}
