/**
 * The page at `/docs`: the OpenAPI document as HTML, the operations first and the prose below. It has no script, so it can
 * be read, searched, linked to and operated by the keyboard as every page is. To try an operation there is its curl command.
 */
import { createHash } from "node:crypto";
import { type Json, type JsonObject, jsonText } from "connect-transcoder";
import {
  type Described,
  type Html,
  html,
  list,
  markdown,
  members,
  type Named,
  row,
  type Schema,
  typeOf,
} from "./schemas.ts";
import { style } from "./style.ts";

/** What the page shows of a document. */
interface OpenApi {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Named<Named<Operation>>;
  readonly components: {
    readonly schemas: Named<Schema>;
    readonly headers: Named<Described>;
    readonly securitySchemes?: Named<Credential>;
  };
}
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly security?: readonly object[];
  readonly parameters: readonly (Parameter | Reference)[];
  readonly requestBody?: { readonly content: Named<{ readonly schema: Schema; readonly example?: Json }> };
  readonly responses: Named<Response | Reference>;
}
interface Parameter extends Described {
  readonly name: string;
}
interface Response {
  readonly description: string;
  readonly headers?: Named<unknown>;
  readonly content?: Named<{ readonly schema: Schema; readonly "x-itemSchema"?: Schema }>;
}
interface Credential {
  readonly description: string;
  /** Its header, or its scheme in `Authorization`. */
  readonly name?: string;
  readonly scheme?: string;
}
/** To a component, such as "#/components/parameters/Prefer". */
interface Reference {
  readonly $ref: string;
}

/** For the browser: nothing but the page's own style. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function docsPage(document: JsonObject): string {
  const { info, servers, tags, paths, components } = document as unknown as OpenApi;
  const base = servers[0]?.url.replace(/\/$/, "") ?? "";
  const operations = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({ verb: verb.toUpperCase(), path, operation })),
  );
  const resolve = <T extends object>(it: T | Reference): T => {
    if (!("$ref" in it)) return it;
    const [, , kind = "", name = ""] = it.$ref.split("/");
    return (components as unknown as Named<Named<T>>)[kind]?.[name] as T;
  };
  const described = (verb: string, path: string, operation: Operation): Html =>
    entry(
      operation.operationId,
      html`<b class="${verb}">${verb}</b> <code>${path}</code>
<span>${operation.summary}${operation.deprecated && " (deprecated)"}</span>`,
      html`${markdown(operation.description)}
<pre><code>${curl(verb, base + path, operation)}</code></pre>
<h4>Parameters</h4>
${list(operation.parameters.map(resolve).map((one) => row(one.name, one)))}
${Object.entries(operation.requestBody?.content ?? {}).map(
  ([type, { schema }]) => html`<h4>Body: ${type}</h4>
<p>${typeOf(schema)}</p>
`,
)}
<h4>Answers</h4>
${list(Object.entries(operation.responses).map(([status, response]) => answer(status, resolve(response))))}`,
    );
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title}: every operation</title>
<link rel="icon" href="data:,">
<style>${{ html: style }}</style>
</head>
<body>
<header>
<h1>${info.title} <small>${info.version}</small></h1>
<p>At <code>${base}</code>, for programs as <a href="openapi.json">openapi.json</a>.
On this page: the operations, <a href="#schemas">schemas</a>, <a href="#headers">headers</a>,
<a href="#about">what holds for all</a>.</p>
</header>
<main>
${tags.map(
  ({ name, description }) => html`<section>
<h2 id="tag-${name}">${name}</h2>
${markdown(description)}
${operations
  .filter(({ operation }) => operation.tags[0] === name)
  .map(({ verb, path, operation }) => described(verb, path, operation))}
</section>
`,
)}
<section>
<h2 id="schemas">Schemas</h2>
${Object.entries(components.schemas).map(([name, schema]) =>
  entry(`schema-${name}`, html`<code>${name}</code>`, members(schema)),
)}
</section>
<section>
<h2 id="headers">Headers of answers</h2>
${list(Object.entries(components.headers).map(([name, header]) => row(name, header, `header-${name}`)))}
</section>
<section>
<h2 id="about">What holds for all operations</h2>
${markdown(info.description)}
${Object.values(components.securitySchemes ?? {}).map(
  ({ name, scheme, description }) => html`<h3><code>${name ?? `Authorization: ${scheme}`}</code></h3>
${markdown(description)}`,
)}
</section>
</main>
</body>
</html>
`.html;
}

/** What can be opened. A browser opens it by itself for a link to the id, which is within. */
const entry = (id: string, title: Html, content: Html): Html => html`<details>
<summary><h3>${title}</h3></summary>
<div id="${id}">
<p><a href="#${id}">#${id}</a></p>
${content}
</div>
</details>
`;

function answer(status: string, { description, headers = {}, content = {} }: Response): Html {
  const bodies = Object.entries(content).map(
    ([type, { schema, "x-itemSchema": item }]) => html`<p>${type}: ${typeOf(schema)}</p>
${markdown(schema.description)}${item && members(item)}`,
  );
  const names = Object.keys(headers).map((name) => html` <a href="#header-${name}">${name}</a>`);
  return html`<div><dt><code>${status}</code></dt>
<dd>${markdown(description)}${bodies}<p>Headers:${names}</p></dd></div>
`;
}

/** A command that works where the examples have been created: identifiers start at 1. */
function curl(verb: string, address: string, { requestBody, responses, security = [] }: Operation): string {
  const [body] = Object.values(requestBody?.content ?? {});
  const streams = Object.values(responses).some((one) => "content" in one && one.content?.["text/event-stream"]);
  return [
    streams ? "curl -N" : "curl -i",
    ...(verb === "GET" || (verb === "POST" && body) ? [] : [`-X ${verb}`]),
    address.replaceAll(/\{[^{}]+\}/g, "1"),
    ...(security.length > 0 ? ['-H "Authorization: Bearer $CREDENTIAL"'] : []),
    ...(body?.example === undefined ? [] : [`--json '${jsonText(body.example).replaceAll("'", "'\\''")}'`]),
  ].join(" ");
}
