/** HTML from templates: what is put in is text, unless it is HTML itself. */
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
