/**
 * The console at `/`: a page, and the files that it loads, from `console/dist`, where `npm run generate` has built them. They
 * are known when the gateway starts, so nothing of a request ever becomes the name of a file.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { HttpError } from "connect-transcoder";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

const built = join(import.meta.dirname, "../console/dist");

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

export interface ConsoleOptions {
  readonly basePath: string;
  /** Another build of it, for tests. */
  readonly dir?: string;
}

export const petstoreConsole =
  ({ basePath, dir = built }: ConsoleOptions) =>
  async (app: FastifyInstance): Promise<void> => {
    const page = await readFile(join(dir, "index.html"));
    const etag = `"${createHash("sha256").update(page).digest("base64url")}"`;
    app.addHook("onRequest", (_request, reply, done) => {
      reply.headers({ "content-security-policy": CSP, "referrer-policy": "no-referrer" });
      done();
    });
    app.get(`${basePath}/`, async (request, reply) => {
      varyBy(reply, "Accept");
      if (!isForPeople(request)) throw notForPrograms;
      // Asked for again each time, for it names the files of one version.
      reply.headers({ etag, "cache-control": "no-cache" });
      if (holds(request, etag)) return reply.code(304).send();
      return reply.type("text/html; charset=utf-8").send(page);
    });
    // Whatever the page names is relative to it.
    if (basePath)
      app.get(basePath, async (request, reply) => {
        varyBy(reply, "Accept");
        if (!isForPeople(request)) throw notForPrograms;
        return reply.redirect(`${basePath}/`, 308);
      });
    const names = await readdir(join(dir, "assets"));
    for (const name of names.filter((each) => !each.endsWith(".gz"))) {
      const file = await readFile(join(dir, "assets", name));
      const packed = await readFile(join(dir, "assets", `${name}.gz`));
      app.get(`${basePath}/console/${name}`, async (request, reply) => {
        // Its name changes with it.
        reply.header("cache-control", "public, max-age=31536000, immutable");
        varyBy(reply, "Accept-Encoding");
        return sendPacked(request, reply.type(TYPES[extname(name)] ?? "application/octet-stream"), file, packed);
      });
    }
  };

/** A browser names HTML. To programs, which take anything or JSON, there is no operation at this path. */
const isForPeople = ({ headers }: FastifyRequest): boolean => headers.accept?.includes("text/html") ?? false;

const notForPrograms = new HttpError(
  "ROUTE_NOT_FOUND",
  "There is only the console here, for browsers (Accept: text/html).",
);

/** Beside what others vary by, such as the Origin. */
function varyBy(reply: FastifyReply, field: string): void {
  const others = reply.getHeader("vary");
  reply.header("vary", others === undefined ? field : `${others}, ${field}`);
}

/** RFC 9110, 13.1.2: whether the browser has it already. */
function holds({ headers }: FastifyRequest, etag: string): boolean {
  const tags = headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags?.some((tag) => tag === etag || tag === "*") ?? false;
}

/** By gzip where the browser takes it, as all do. */
function sendPacked({ headers }: FastifyRequest, reply: FastifyReply, file: Buffer, packed: Buffer): FastifyReply {
  const isTaken = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(headers["accept-encoding"] ?? ""));
  return isTaken ? reply.header("content-encoding", "gzip").send(packed) : reply.send(file);
}
