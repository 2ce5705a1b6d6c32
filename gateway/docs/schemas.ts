/** JSON Schemas of the document in words, and the HTML and Markdown that they and the page are made of. */
import { type Json, jsonText } from "connect-transcoder";
import { Marked } from "marked";

export type Named<T> = Readonly<Record<string, T>>;

export interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Named<Schema>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly Json[];
  readonly const?: Json;
  readonly examples?: readonly Json[];
}

/** A parameter, a header or a member of a record. */
export interface Described {
  readonly in?: string;
  readonly description?: string | undefined;
  readonly required?: boolean;
  readonly schema?: Schema;
}

export const list = (rows: readonly Html[]): Html => (rows.length === 0 ? html`<p>None.</p>` : html`<dl>${rows}</dl>`);

export function row(name: string, { in: place, description, required, schema = {} }: Described, id?: string): Html {
  return html`<div><dt${id && html` id="${id}"`}><code>${name}</code> ${place && `${place}, `}${required && "required, "}${typeOf(schema)}</dt>
<dd>${markdown(description)}</dd></div>
`;
}

/** A schema's members, or what it is instead of an object. */
export function members(schema: Schema): Html {
  const { description, properties, required = [], examples } = schema;
  const rows = Object.entries(properties ?? {}).map(([name, member]) =>
    row(name, { description: member.description, required: required.includes(name), schema: member }),
  );
  return html`${markdown(description)}${properties ? list(rows) : html`<p>${typeOf(schema)}</p>`}
${examples?.map((example) => html`<pre><code>${jsonText(example)}</code></pre>`)}`;
}

const LIMITS = /^(default|format|pattern|uniqueItems|content(Encoding|MediaType)|(exclusive)?(min|max)[A-Z]?\w+)$/;

/** A type, and the keywords that limit it. */
export function typeOf(schema: Schema): Html {
  const limits = Object.entries(schema).filter(([keyword]) => LIMITS.test(keyword));
  return html`${nameOf(schema)}${limits.map(([keyword, value]) => html`, ${keyword} <code>${jsonText(value)}</code>`)}`;
}

function nameOf({ $ref, type = "any value", items, anyOf, allOf, enum: values, const: value }: Schema): Html {
  if ($ref !== undefined) {
    const name = $ref.slice("#/components/schemas/".length);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  const fixed = values ?? (value === undefined ? undefined : [value]);
  if (fixed)
    return joined(
      fixed.map((one) => html`<code>${jsonText(one)}</code>`),
      "or",
    );
  if (items) return html`array of ${typeOf(items)}`;
  if (anyOf) return joined(anyOf.map(typeOf), "or");
  if (allOf) return joined(allOf.map(typeOf), "and");
  return html`${[type].flat().join(" or ")}`;
}

const joined = (all: readonly Html[], word: "and" | "or"): Html =>
  html`${all.map((one, i) => (i === 0 ? one : html` ${word} ${one}`))}`;

/** HTML of templates and of Markdown. What is put into a template is text, unless it is HTML itself. */
export interface Html {
  readonly html: string;
}

type Value = Html | string | false | undefined | readonly Html[];

export const html = (parts: TemplateStringsArray, ...values: readonly Value[]): Html => ({
  html: parts.map((part, i) => (i === 0 ? "" : markup(values[i - 1])) + part).join(""),
});

function markup(value: Value): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "string") return value.replaceAll(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return "html" in value ? value.html : value.map(markup).join("");
}

// HTML in the texts of the document is shown as it is, never taken as HTML.
const renderer = new Marked({ tokenizer: { html: () => undefined, tag: () => undefined } });

export const markdown = (text = ""): Html => ({ html: renderer.parse(text, { async: false }) });
