import { Marked } from "marked";

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
