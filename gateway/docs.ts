/** `/openapi.json`, and `/docs`, the reference page made from it. The page loads nothing from other hosts. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { FastifyInstance } from "fastify";

// The package contains the files of Swagger UI. Its own page can't show a document that exists already.
const uiFiles = join(dirname(createRequire(import.meta.url).resolve("@fastify/swagger-ui")), "static");

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'", // Swagger UI sets styles on elements
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

// Addresses are relative to /docs, so that they are right behind any prefix.
const page = (title: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

const start = (
  url: string,
) => `// The document names one address. The page may have come from another, and may call no other.
const named = ${JSON.stringify(url)};
const here = new URL(".", location.href).href.replace(/\\/$/, "");
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // the default sends the document to another host
  requestInterceptor: (request) =>
    request.url.startsWith(named + "/") ? Object.assign(request, { url: here + request.url.slice(named.length) }) : request,
});
`;

const assets = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

export interface DocsOptions {
  readonly basePath: string;
  readonly title: string;
  /** The address that the document names, with `basePath`. Called when it is first requested. */
  readonly url: () => string;
  /** The OpenAPI document as JSON text. Called when it is first requested. */
  readonly document: () => Promise<string>;
}

export const docs =
  ({ basePath, title, url, document }: DocsOptions) =>
  async (app: FastifyInstance): Promise<void> => {
    const serve = (path: string, type: string, make: () => Promise<string | Buffer>) => {
      const content = once(make);
      app.get(basePath + path, async (_, reply) =>
        reply
          .header("content-security-policy", CSP)
          .type(type)
          .send(await content()),
      );
    };
    serve("/openapi.json", "application/json", document);
    serve("/docs", "text/html; charset=utf-8", async () => page(title));
    serve("/docs/start.js", "text/javascript; charset=utf-8", async () => start(url()));
    for (const [name, type] of Object.entries(assets))
      serve(`/docs/${name}`, type, () => readFile(join(uiFiles, name)));
  };

/** Calls `make` on first use and keeps its result. After a failure the next use calls it again. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
