/** Operations that no request reaches, because a route of the host's takes all that is meant for them. */
import type { FastifyInstance } from "fastify";
import type { Operation } from "../contract/operation.ts";
import { isRest } from "../contract/template.ts";
import { isCatchAll } from "./unrouted.ts";

interface Route {
  readonly methods: readonly string[];
  readonly url: string;
}

/**
 * Tells of them when the server is ready, for only then all routes are there. To be called before the host registers its own:
 * of those that were there before, Fastify shows only whether there is one with the operation's own path.
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
