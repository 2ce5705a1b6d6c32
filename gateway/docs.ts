/** `/openapi.json`, and `/docs`, the page made from it. */
import { type JsonObject, jsonText } from "connect-transcoder";
import type { FastifyInstance } from "fastify";

/** `document` makes the OpenAPI document, and is called when one of the two is first requested. */
export const docs =
  (basePath: string, document: () => Promise<JsonObject>) =>
  async (app: FastifyInstance): Promise<void> => {
    const made = once(document);
    const json = once(async () => Buffer.from(jsonText(await made())));
    const page = once(async () => {
      const [{ contentSecurityPolicy, docsPage }, described] = await Promise.all([import("./docs/page.ts"), made()]);
      return { contentSecurityPolicy, html: Buffer.from(docsPage(described)) };
    });
    app.get(`${basePath}/openapi.json`, async (_, reply) => reply.type("application/json").send(await json()));
    app.get(`${basePath}/docs`, async (_, reply) => {
      const { contentSecurityPolicy, html } = await page();
      return reply.header("content-security-policy", contentSecurityPolicy).type("text/html; charset=utf-8").send(html);
    });
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
