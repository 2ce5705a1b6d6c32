/**
 * What is between the operations and the routes of the host's own: requests that none of them takes (an unknown path, a known
 * path with another method, OPTIONS), and operations that no request reaches.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { isRest } from "../contract/template.ts";
import { HttpError } from "../errors/http-error.ts";
import { ACCEPT_PATCH } from "../policy/media.ts";
import { splitTarget } from "../request/http.ts";
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
    if (request.method === "OPTIONS") return void reply.code(204).headers(headers).send();
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

const isCatchAll = (url: string): boolean => url === "*" || url === "/*";

const patternOf = (url: string): RegExp =>
  new RegExp(
    `^${url
      .split("/")
      .map((part) => (part.startsWith(":") ? "[^/]+" : part === "*" ? ".*" : part.replaceAll(/[^\w~-]/g, "\\$&")))
      .join("/")}$`,
  );

const notFound = ({ method }: FastifyRequest): HttpError =>
  new HttpError("ROUTE_NOT_FOUND", `There is nothing to ${method} at this path.`);

interface Route {
  readonly methods: readonly string[];
  readonly url: string;
}

/**
 * Tells of operations that no request reaches, because a route of the host's takes all that is meant for them. It does
 * so when the server is ready, for only then all routes are there. To be called before the host registers its own: of those
 * that were there before, Fastify shows only whether there is one with the operation's own path.
 */
export function reportHidden(
  app: FastifyInstance,
  operations: readonly Operation[],
  basePath: string,
  report: (hidden: readonly string[]) => void,
): void {
  const routes: Route[] = [];
  app.addHook("onRoute", ({ method, url, constraints }) => {
    // With constraints it takes some requests and leaves others.
    if (!isCatchAll(url) && Object.keys(constraints ?? {}).length === 0) routes.push({ methods: [method].flat(), url });
  });
  app.addHook("onReady", (done) => {
    const hidden = operations.flatMap((operation) => {
      const { method, verb, route } = operation;
      const parts = partsOf(operation, basePath);
      const own = routes.find(({ methods, url }) => methods.includes(verb) && takesAll(url, parts))?.url;
      const url = own ?? earlierRoute(app, verb, parts);
      if (url === undefined) return [];
      return [
        `${method}: no request reaches ${verb} ${basePath}${route}, because the server's own route ${url} goes first`,
      ];
    });
    if (hidden.length > 0) report(hidden);
    done();
  });
}

/** A segment of a path: fixed text, any text, or any number of segments. */
type Part = { readonly text: string } | "one" | "rest";

function partsOf({ template: { segments, customVerb } }: Operation, basePath: string): Part[] {
  const parts = segments.map(
    (segment): Part => ("literal" in segment ? { text: segment.literal } : isRest(segment) ? "rest" : "one"),
  );
  const last = parts.at(-1);
  if (customVerb !== "" && typeof last === "object") parts.splice(-1, 1, { text: `${last.text}:${customVerb}` });
  const base = basePath.split("/").slice(1);
  return [...base.map((text) => ({ text })), ...parts];
}

/** Whether a route takes every path of these parts: by the same text, a parameter of a whole segment, or "*" for what follows. */
function takesAll(url: string, parts: readonly Part[]): boolean {
  const own = url.split("/").slice(1);
  const isOpen = own.at(-1) === "*";
  // "**" may be no segment at all: "/v1/files/*" leaves "/v1/files".
  const least = parts.filter((part) => part !== "rest").length;
  if (isOpen ? own.length > least : own.length !== parts.length) return false;
  const fixed = isOpen ? own.slice(0, -1) : own;
  return fixed.every((text, i) => {
    const part = parts[i];
    if (/^:\w+$/.test(text)) return part !== "rest"; // also an empty one, which is then refused
    return typeof part === "object" && part.text === text.replaceAll("::", ":");
  });
}

function earlierRoute(app: FastifyInstance, method: string, parts: readonly Part[]): string | undefined {
  if (parts.includes("rest") || !app.supportedMethods.includes(method)) return undefined;
  const url = parts.map((part) => `/${typeof part === "object" ? part.text.replaceAll(":", "::") : ":any"}`).join("");
  return app.hasRoute({ method, url }) ? url : undefined;
}
