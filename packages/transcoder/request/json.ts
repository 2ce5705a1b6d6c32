/**
 * JSON as RFC 8259 has it, and stricter where it leaves a choice: no byte order mark, no member twice, no lone
 * surrogates, no nesting beyond a limit. Numbers are kept as they were written, for `JSON.parse` would round 2^53+1 and
 * could not tell 1e-400 from 0; of its leniency about duplicates nothing could be seen afterwards either.
 */
import { excerpt, HttpError } from "../errors/http-error.ts";

/** A number as it was written; `toInteger` knows its value. */
export class JsonNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Members are kept in a Map: whatever their names are ("__proto__"), they are data. */
export type JsonObject = ReadonlyMap<string, JsonValue>;
export type JsonValue = null | boolean | string | JsonNumber | readonly JsonValue[] | JsonObject;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads a body. `maxDepth` counts nested arrays and objects; the outermost value is 1.
 *
 * @throws HttpError MALFORMED_JSON
 */
export function parseJson(bytes: Uint8Array, maxDepth: number): JsonValue {
  if (bytes.length === 0) throw malformed("The body is empty; it must be a JSON text");
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw malformed("The body is not valid UTF-8");
  }
  if (text.startsWith("\uFEFF")) throw malformed("The body must not begin with a byte order mark");
  return new Reader(text, maxDepth).document();
}

const malformed = (message: string) => new HttpError("MALFORMED_JSON", `${message}.`);

// Sticky: each matches at lastIndex or not at all.
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;
// What may stand between quotes; whether its escapes are right is left to JSON.parse.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const STRING = /"[^"\\\u0000-\u001F]*(?:\\[^\u0000-\u001F][^"\\\u0000-\u001F]*)*"/y;

class Reader {
  readonly #text: string;
  readonly #maxDepth: number;
  #at = 0;
  #depth = 1;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  document(): JsonValue {
    this.#skipSpace();
    const value = this.#value();
    if (this.#at < this.#text.length) throw this.#unexpected();
    return value;
  }

  /** Reads one value and the space behind it. */
  #value(): JsonValue {
    switch (this.#text[this.#at]) {
      case "{":
        return this.#nested(() => this.#object());
      case "[":
        return this.#nested(() => this.#array());
      case '"':
        return this.#string();
      case "t":
        return this.#word(true);
      case "f":
        return this.#word(false);
      case "n":
        return this.#word(null);
      default:
        return new JsonNumber(this.#match(NUMBER));
    }
  }

  #nested<T>(read: () => T): T {
    if (this.#depth > this.#maxDepth) throw malformed(`The body is nested deeper than ${this.#maxDepth}`);
    this.#depth += 1;
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #object(): JsonObject {
    const members = new Map<string, JsonValue>();
    this.#expect("{");
    if (this.#accept("}")) return members;
    do {
      const name = this.#string();
      if (members.has(name)) throw malformed(`The body names the member ${JSON.stringify(excerpt(name))} twice`);
      this.#expect(":");
      members.set(name, this.#value());
    } while (this.#accept(","));
    this.#expect("}");
    return members;
  }

  #array(): JsonValue[] {
    const items: JsonValue[] = [];
    this.#expect("[");
    if (this.#accept("]")) return items;
    do items.push(this.#value());
    while (this.#accept(","));
    this.#expect("]");
    return items;
  }

  #string(): string {
    const start = this.#at;
    const quoted = this.#match(STRING);
    if (!quoted.includes("\\")) return quoted.slice(1, -1);
    let value: string;
    try {
      value = JSON.parse(quoted);
    } catch {
      throw malformed(`The body has a string with a wrong escape at position ${start}`);
    }
    if (!value.isWellFormed()) throw malformed(`The body has a string with a lone surrogate at position ${start}`);
    return value;
  }

  #word<T extends boolean | null>(value: T): T {
    if (this.#match(WORD) !== String(value)) throw this.#unexpected();
    return value;
  }

  #expect(mark: string): void {
    if (!this.#accept(mark)) throw this.#unexpected();
  }

  #accept(mark: string): boolean {
    if (this.#text[this.#at] !== mark) return false;
    this.#at += 1;
    this.#skipSpace();
    return true;
  }

  #match(token: RegExp): string {
    token.lastIndex = this.#at;
    const found = token.exec(this.#text)?.[0];
    if (found === undefined) throw this.#unexpected();
    this.#at += found.length;
    this.#skipSpace();
    return found;
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #unexpected() {
    return this.#at < this.#text.length
      ? malformed(`The body is not JSON: ${JSON.stringify(this.#text[this.#at])} at position ${this.#at} is unexpected`)
      : malformed("The body is not JSON: it ends too early");
  }
}
