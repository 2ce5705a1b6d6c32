/** The admin port, for whoever runs the command: how it is, and what it has counted. It changes nothing. */
import type { IncomingMessage } from "node:http";
import { CONTENT_TYPE, type Form, formFor } from "@petstore/metrics/exposition";
import { type AdminAnswer, openAdminPort } from "@petstore/rpc/http/admin-port";
import { splitTarget } from "../request/http.ts";
import { adviceOn, type Settings } from "./flags.ts";
import { reach } from "./source.ts";

/** How long a target may take to accept a connection, in milliseconds: a probe of Kubernetes gives up after a second. */
const PATIENCE_MS = 900;

export interface AdminOptions extends Pick<Settings, "admin" | "targets" | "targetTls"> {
  readonly metrics: (form: Form) => string;
  readonly phase: () => Phase;
}

export type Phase = "starting" | "serving" | "draining";

/** Undefined where there is to be none. */
export async function openAdmin({ admin, targets, targetTls, metrics, phase }: AdminOptions) {
  if (!admin) return undefined;
  const readiness = createReadiness(targets.values(), targetTls, phase);
  const alive = () => told(200, { status: "ok" });
  const routes: Readonly<Record<string, (accept: string | undefined) => AdminAnswer | Promise<AdminAnswer>>> = {
    "/livez": alive,
    "/healthz": alive,
    "/startupz": () => (phase() === "starting" ? told(503, { status: "starting" }) : told(200, { status: "started" })),
    "/readyz": readiness,
    "/metrics": (accept) => {
      const form = formFor(accept);
      return { status: 200, type: CONTENT_TYPE[form], text: metrics(form) };
    },
  };
  const answer = (request: IncomingMessage) => {
    const { path } = splitTarget(request.url ?? "");
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (!route) return told(404, { message: `Here are ${Object.keys(routes).join(", ")}.` });
    if (request.method !== "GET" && request.method !== "HEAD")
      return { ...told(405, { message: "Everything here is asked for by GET." }), headers: { allow: "GET, HEAD" } };
    return route(request.headers.accept);
  };
  return openAdminPort(admin, answer, adviceOn("admin-"));
}

const told = (status: number, body: object): AdminAnswer => ({ status, body });

/**
 * Ready as long as any target accepts connections; it names those that don't. They are tried once at a time, however many ask.
 */
function createReadiness(urls: Iterable<string>, tls: Settings["targetTls"], phase: () => Phase) {
  const targets = new Set(urls);
  let trying: Promise<string[]> | undefined;
  const isAway = async (target: string) =>
    reach(target, tls, PATIENCE_MS).then(
      () => [],
      () => [new URL(target).host],
    );
  return async () => {
    if (phase() !== "serving") return told(503, { status: "not ready", failing: [], phase: phase() });
    trying ??= Promise.all(Array.from(targets, isAway))
      .then((all) => all.flat())
      .finally(() => {
        trying = undefined;
      });
    const failing = await trying;
    return failing.length < targets.size
      ? told(200, { status: "ready", failing })
      : told(503, { status: "not ready", failing });
  };
}
