/** The page at /docs: what there is, in a list, and where the document is. */
import type { Operation } from "../contract/operation.ts";

export function docsPage(title: string, operations: readonly Operation[]): string {
  const rows = operations.map(
    ({ verb, route, service, method }) =>
      `<tr><td>${escaped(verb)}<td><code>${escaped(route)}</code><td>${escaped(`${service.typeName}.${method.name}`)}`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color-scheme: light dark }
table { border-collapse: collapse } td, th { padding: .25rem 1rem .25rem 0; text-align: left; vertical-align: top }
</style>
<h1>${escaped(title)}</h1>
<p>The OpenAPI document is at <a href="openapi.json">openapi.json</a>.
<table>
<tr><th>Verb<th>Path<th>RPC
${rows.join("\n")}
</table>
</html>
`;
}

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
