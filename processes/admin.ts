/**
 * The admin port of a process, for whoever runs it: beside the API, without its limits, rates and credentials. Who may come
 * there is said by ADMIN_HOST, this machine alone by default. Other machines may only ask how the process is. All else is asked
 * for by this machine, by no web page. What changes something leaves a line in the log.
 */
import type { IncomingMessage } from "node:http";
import { isLoopback } from "@petstore/rpc/http/address";
import { type AdminAnswer, openAdminPort } from "@petstore/rpc/http/admin-port";
import { createHostCheck } from "@petstore/rpc/http/hosts";
import { ConfigError } from "@petstore/runtime/environment";
import type { Logger } from "@petstore/runtime/log";
import { readBody, splitTarget } from "connect-transcoder/http";
import type { ProcessConfig } from "./config.ts";
import { adminListenAdvice } from "./listen-advice.ts";

export type { AdminAnswer };

/** By method and path. A GET reads; all others change something, and are called one after the other. */
export type AdminRoutes = Map<
  `${"GET" | "POST" | "PUT"} /${string}`,
  (body: string, query: URLSearchParams, accept?: string) => AdminAnswer | Promise<AdminAnswer>
>;

/** What other machines may ask for, too. */
const FOR_ALL: ReadonlySet<string> = new Set([
  ...["GET /healthz", "GET /livez", "GET /startupz", "GET /readyz", "GET /metrics"],
]);

const MAX_BODY_BYTES = 64 * 1024;
/** Of a body that is logged, in characters. */
const MAX_LOGGED = 500;
const ALIVE: AdminAnswer = { status: 200, body: { status: "ok" } };
/** For `GET /startupz`, once a process has started. */
export const STARTED: AdminAnswer = { status: 200, body: { status: "started" } };

/** What a caller sent can't be used; the message says why. */
export class Unusable extends Error {
  override readonly name = "Unusable";
}

/** Opens the port, if the process is to have one; the stack closes it. A process adds its own routes, also later on. Throws `ListenError`. */
export async function openAdmin(
  { admin, allowedHosts = [] }: Pick<ProcessConfig, "admin" | "allowedHosts">,
  log: Logger,
  stack: AsyncDisposableStack,
) {
  const routes: AdminRoutes = new Map([
    ["GET /healthz", () => ALIVE],
    ["GET /livez", () => ALIVE], // if its event loop turns
    ["GET /startupz", () => ({ status: 503, body: { status: "starting" } })], // until it has started
    ["GET /readyz", () => ({ status: 503, body: { status: "not ready" } })], // until the process can say
  ]);
  if (!admin) return { routes, url: undefined };
  const checkHost = createHostCheck(allowedHosts);
  let last: Promise<unknown> = Promise.resolve();

  /** Why a request is refused that only this machine may send. */
  function refusalOf(request: IncomingMessage): string | undefined {
    const { origin: page, "sec-fetch-site": site = "" } = request.headers;
    if (!isLoopback(request.socket.remoteAddress ?? ""))
      return "This can be asked for on the machine itself alone, by 127.0.0.1: for that ADMIN_HOST is 127.0.0.1 or 0.0.0.0.";
    // A page that loads this as an image sends no Origin.
    if (page !== undefined || /^(cross|same)-site$/.test(`${site}`))
      return "No web page may ask for this: leave the headers Origin and Sec-Fetch-Site out.";
    const host = checkHost(request);
    return host && `Host: ${host}`;
  }

  async function answer(request: IncomingMessage): Promise<AdminAnswer> {
    const { path, query } = splitTarget(request.url ?? "");
    const asked = `${request.method === "HEAD" ? "GET" : request.method} ${path}`;
    const route = routes.get(asked as "GET /healthz");
    if (!route) return problem(404, `Here are ${[...routes.keys()].join(", ")}.`);
    const refusal = FOR_ALL.has(asked) ? undefined : refusalOf(request);
    const run = (body = "") =>
      refusal === undefined ? route(body, new URLSearchParams(query), request.headers.accept) : problem(403, refusal);
    if (asked.startsWith("GET ")) return run();
    const body = refusal === undefined ? await bodyOf(request) : "";
    const turn = last.then(() => run(body)).catch(failed);
    last = turn;
    const result = await turn;
    const { status } = result;
    log.info(
      { admin: asked, from: request.socket.remoteAddress, body: body.slice(0, MAX_LOGGED), status },
      "asked at the admin port",
    );
    return result;
  }

  function failed(err: unknown): AdminAnswer {
    if (err instanceof Unusable || err instanceof ConfigError) return problem(400, err.message);
    log.error({ err }, "a request to the admin port failed");
    return problem(500, "That failed. The log says why.");
  }

  const { port, url, close } = await openAdminPort(
    admin,
    (request) => answer(request).catch(failed),
    adminListenAdvice,
  );
  stack.defer(close);
  log.info({ host: admin.host, port }, "the admin port is open");
  return { routes, url };
}

/** A refusal, with what to do instead. */
export const problem = (status: number, message: string): AdminAnswer => ({ status, body: { message, status } });

async function bodyOf(request: IncomingMessage): Promise<string> {
  const bytes = await readBody(request, (_piece, length) => {
    if (length > MAX_BODY_BYTES) throw new Unusable(`The body may have ${MAX_BODY_BYTES} bytes at most.`);
  });
  return bytes.toString();
}
