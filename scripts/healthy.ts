/**
 * `node scripts/healthy.ts`: the health check of a container. Asks the process on PORT_BASE, where the launcher's gateway
 * listens (it takes no PORT), or else the one on PORT, whether it is ready, and prints the answer. Ends with 0 if it is
 * ready and with 1 if not, after 4 s at the latest.
 */
import { once } from "node:events";
import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { text } from "node:stream/consumers";
import { reachable } from "@petstore/rpc/http/address";

const request = process.env.TLS_CERT?.trim() ? overHttps : overHttp;
const { HOST = "", PORT, PORT_BASE } = process.env;
const ports = [PORT_BASE, PORT].filter((port) => port?.trim());
const place = {
  host: reachable(HOST.trim() || "127.0.0.1"),
  // The request holds no secrets, and the certificate is for the names that other machines use, not for this address.
  rejectUnauthorized: false,
  signal: AbortSignal.timeout(4_000),
};
const basePath = (process.env.HTTP_BASE_PATH ?? "").replace(/\/$/, "");

async function ask(
  port: string,
  method: string,
  path: string,
  body = "",
): Promise<{ status: number | undefined; said: string }> {
  // This name is always allowed, whatever ALLOWED_HOSTS says.
  const headers = { host: "localhost", "content-type": "application/json", connection: "close" };
  const asked = request({ ...place, port, method, path, headers });
  const [answer] = (await once(asked.end(body), "response")) as [IncomingMessage];
  return { status: answer.statusCode, said: await text(answer) };
}

/** A service, which has no such path, is asked by grpc.health.v1. */
async function readiness(port: string): Promise<string> {
  const gateway = await ask(port, "GET", `${basePath}/readyz`);
  if (gateway.status !== 404) return gateway.said;
  return (await ask(port, "POST", "/grpc.health.v1.Health/Check", "{}")).said;
}

try {
  const [first = "8080", second = first] = ports;
  const said = await readiness(first).catch((error) => {
    if (error.code !== "ECONNREFUSED" || second === first) throw error;
    return readiness(second);
  });
  console.log(said);
  process.exitCode = /^\{"status":"(ready|SERVING)"/.test(said) ? 0 : 1;
} catch (error) {
  console.log((error as Error).cause ?? error);
  process.exitCode = 1;
}
