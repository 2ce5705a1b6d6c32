/**
 * Serves the console at `/`: a page and its assets from `console/dist`, which `npm run generate` builds. All files are read
 * at start, so no part of a request is ever used as a file name.
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

/** `dir` is another build, for tests. */
export const petstoreConsole =
  ({ basePath, dir = built }: { readonly basePath: string; readonly dir?: string }) =>
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
      // Browsers revalidate the page each time, because it names the files of one version.
      reply.headers({ etag, "cache-control": "no-cache" });
      if (holds(request, etag)) return reply.code(304).send();
      return reply.type("text/html; charset=utf-8").send(page);
    });
    // The page's URLs are relative, so its own has to end with a slash.
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
        // A file's name changes with its content.
        reply.header("cache-control", "public, max-age=31536000, immutable");
        varyBy(reply, "Accept-Encoding");
        return sendPacked(request, reply.type(TYPES[extname(name)] ?? "application/octet-stream"), file, packed);
      });
    }
  };

/** Browsers accept `text/html` by name. Programs accept anything or JSON; they get the error for a missing route. */
const isForPeople = ({ headers }: FastifyRequest): boolean => headers.accept?.includes("text/html") ?? false;

const notForPrograms = new HttpError(
  "ROUTE_NOT_FOUND",
  "There is only the console here, for browsers (Accept: text/html).",
);

/** Adds a field to `Vary` and keeps those already there, such as `Origin`. */
function varyBy(reply: FastifyReply, field: string): void {
  const others = reply.getHeader("vary");
  reply.header("vary", others === undefined ? field : `${others}, ${field}`);
}

/** Whether the browser has this version already (`If-None-Match`, RFC 9110, 13.1.2). */
function holds({ headers }: FastifyRequest, etag: string): boolean {
  const tags = headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags?.some((tag) => tag === etag || tag === "*") ?? false;
}

/** Sends the gzip version to browsers that accept gzip, as all do. */
function sendPacked({ headers }: FastifyRequest, reply: FastifyReply, file: Buffer, packed: Buffer): FastifyReply {
  const isTaken = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(headers["accept-encoding"] ?? ""));
  return isTaken ? reply.header("content-encoding", "gzip").send(packed) : reply.send(file);
}
