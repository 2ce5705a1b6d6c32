/** Requests that no route takes: an unknown path, a known path with another method, and OPTIONS. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpError } from "../errors/http-error.ts";
import { ACCEPT_PATCH } from "../policy/media.ts";
import { splitTarget } from "../request/head.ts";
import type { Router } from "./router.ts";

/**
 * Answers OPTIONS on every path that has an operation, or a route of the host's, and refuses what has none. To be called before
 * the routes are registered.
 */
export function answerUnrouted(app: FastifyInstance, router: Router): void {
  const methodsByUrl = new Map<string, Set<string>>();
  const patterns = new Map<string, RegExp>();
  app.addHook("onRoute", ({ url, method }) => {
    if (isCatchAll(url)) return;
    const methods = methodsByUrl.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    methodsByUrl.set(url, methods);
    patterns.set(url, patternOf(url));
  });

  const allowedOn = (path: string): string[] => {
    const decoded = decodeURI(path);
    const own = [...methodsByUrl].flatMap(([url, methods]) => (patterns.get(url)?.test(decoded) ? [...methods] : []));
    return sorted([...router.verbsAt(path), ...own]);
  };
  /** OPTIONS with "*" asks about the server as a whole (RFC 9110, 9.3.7). */
  const allowedAnywhere = (): string[] =>
    sorted([...router.verbs, ...[...methodsByUrl.values()].flatMap((methods) => [...methods])]);

  app.addHook("onRequest", (request, reply, done) => {
    if (request.operation) return done();
    if (!request.is404 && !isCaught(request)) {
      if (hasEmptyParameter(request)) throw notFound(request);
      return done();
    }
    const { path } = splitTarget(request.url);
    const methods = path === "*" && request.method === "OPTIONS" ? allowedAnywhere() : allowedOn(path);
    // A route for all that is left, of the host's own, as for the pages of an application.
    if (methods.length === 0 && !request.is404 && request.method !== "OPTIONS") return done();
    if (methods.length === 0) throw notFound(request);
    const headers = { allow: methods.join(", "), ...(methods.includes("PATCH") ? ACCEPT_PATCH : {}) };
    if (request.method === "OPTIONS") return void answerOptions(reply, headers);
    throw new HttpError(
      "METHOD_NOT_ALLOWED",
      `${request.method} is not allowed on this path; it has ${methods.join(", ")}.`,
      { allow: headers.allow },
    );
  });
}

/** With OPTIONS, which every path has that has any method. */
const sorted = (methods: readonly string[]): string[] =>
  methods.length === 0 ? [] : [...new Set([...methods, "OPTIONS"])].sort();

/** Fastify lets a parameter be empty, as in "/books/". What a route takes whole ("*") may be. */
function hasEmptyParameter({ params }: FastifyRequest): boolean {
  for (const name in params as Record<string, string>)
    if ((params as Record<string, string>)[name] === "" && name !== "*") return true;
  return false;
}

/** Looked at only where a part of the path is free: a route's options are put together each time that they are asked for. */
const isCaught = (request: FastifyRequest): boolean =>
  "*" in (request.params as object) && isCatchAll(request.routeOptions.url ?? "");

export const isCatchAll = (url: string): boolean => url === "*" || url === "/*";

const patternOf = (url: string): RegExp =>
  new RegExp(
    `^${url
      .split("/")
      .map((part) => (part.startsWith(":") ? "[^/]+" : part === "*" ? ".*" : part.replaceAll(/[^\w~-]/g, "\\$&")))
      .join("/")}$`,
  );

const answerOptions = (reply: FastifyReply, headers: Record<string, string>) => reply.code(204).headers(headers).send();

const notFound = ({ method }: FastifyRequest): HttpError =>
  new HttpError("ROUTE_NOT_FOUND", `There is nothing to ${method} at this path.`);
