/** Texts of the document are Markdown. HTML in them is shown as it is, never taken as HTML. */
import { Marked } from "marked";
import type { Html } from "./html.ts";

const renderer = new Marked({ tokenizer: { html: () => undefined, tag: () => undefined } });

export const markdown = (text = ""): Html => ({ html: renderer.parse(text, { async: false }) });
