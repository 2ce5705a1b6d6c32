/** The admin port, for whoever runs the command: how it is, and what it has counted. It changes nothing. */
import { createServer } from "node:http";
import { CONTENT_TYPE, type Form, formFor } from "@petstore/metrics/exposition";
import { origin } from "@petstore/rpc/http/address";
import { listen } from "@petstore/rpc/http/listen";
import { splitTarget } from "../request/head.ts";
import type { Settings } from "./flags.ts";
import { reach } from "./source.ts";

const MAX_CONNECTIONS = 100;
/** How long a request may take to arrive, in milliseconds. */
const REQUEST_MS = 10_000;
/** How long a target may take to accept a connection, in milliseconds: a probe of Kubernetes gives up after a second. */
const PATIENCE_MS = 900;

export interface AdminOptions extends Pick<Settings, "admin" | "targets" | "targetTls"> {
  readonly metrics: (form: Form) => string;
  readonly phase: () => Phase;
}

export type Phase = "starting" | "serving" | "draining";

interface Answer {
  readonly status: number;
  readonly type?: string;
  readonly text: string;
}

const json = (status: number, body: object): Answer => ({ status, text: JSON.stringify(body) });

/** Undefined where there is to be none. */
export async function openAdmin({ admin, targets, targetTls, metrics, phase }: AdminOptions) {
  if (!admin) return undefined;
  const readiness = createReadiness({ targets, targetTls }, phase);
  const alive = () => json(200, { status: "ok" });
  const routes: Readonly<Record<string, (accept: string | undefined) => Answer | Promise<Answer>>> = {
    "/livez": alive,
    "/healthz": alive,
    "/startupz": () => (phase() === "starting" ? json(503, { status: "starting" }) : json(200, { status: "started" })),
    "/readyz": readiness,
    "/metrics": (accept) => {
      const form = formFor(accept);
      return { status: 200, type: CONTENT_TYPE[form], text: metrics(form) };
    },
  };
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, async (request, response) => {
    const { path } = splitTarget(request.url ?? "");
    const isRead = request.method === "GET" || request.method === "HEAD";
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    const unknown = () => json(404, { message: `Here are ${Object.keys(routes).join(", ")}.` });
    const refused = () => json(405, { message: "Everything here is asked for by GET." });
    const {
      status,
      type = "application/json",
      text,
    } = await (!route ? unknown() : !isRead ? refused() : route(request.headers.accept));
    if (status === 405) response.setHeader("allow", "GET, HEAD");
    if (!request.complete) response.setHeader("connection", "close");
    const headers = { "cache-control": "no-store", "x-content-type-options": "nosniff", "content-type": type };
    response.writeHead(status, headers).end(text);
  });
  server.maxConnections = MAX_CONNECTIONS;
  const port = await listen(server, admin, adviceOn);
  return {
    url: origin(admin.host, port),
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Ready as long as any target accepts connections; it names those that don't. They are tried once at a time, however many ask.
 */
function createReadiness(given: Pick<Settings, "targets" | "targetTls">, phase: () => Phase): () => Promise<Answer> {
  const targets = new Set(given.targets.values());
  let trying: Promise<string[]> | undefined;
  const isAway = async (target: string) =>
    reach(target, given.targetTls, PATIENCE_MS).then(
      () => [],
      () => [new URL(target).host],
    );
  return async () => {
    if (phase() !== "serving") return json(503, { status: "not ready", failing: [], phase: phase() });
    trying ??= Promise.all(Array.from(targets, isAway))
      .then((all) => all.flat())
      .finally(() => {
        trying = undefined;
      });
    const failing = await trying;
    const isReady = failing.length < targets.size;
    return json(isReady ? 200 : 503, { status: isReady ? "ready" : "not ready", failing });
  };
}

const adviceOn = (code: string): string | undefined =>
  ({
    EADDRINUSE:
      "something else listens there already. Choose another with --admin-port (0 takes a free one, off none).",
    EACCES: "that is not allowed to you. Choose an --admin-port above 1023.",
    EADDRNOTAVAIL: "this machine does not have that address. Choose another with --admin-host.",
    ENOTFOUND: "there is no such host. Choose another with --admin-host.",
  })[code];
