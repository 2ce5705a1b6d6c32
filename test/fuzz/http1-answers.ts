/** Reads the answers of one HTTP/1.1 connection strictly: what a lenient client would accept is a find. */
import { expectThat, Find } from "./find.ts";

export interface HttpAnswer {
  readonly status: number;
  /** In lower case; several lines of one name are joined by ", ". */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** Fields after a chunked body. */
  readonly trailers: ReadonlyMap<string, string>;
}

const NONE: ReadonlyMap<string, string> = new Map();
const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d) [ -~]*$/;
const FIELD = /^([!#$%&'*+.^_`|~\dA-Za-z-]+): ?([\x20-\x7e\x80-\xff]*)$/;

/**
 * `methods` has the methods of the requests, as far as they are known: an answer to HEAD has no body. `isCut` means that the
 * connection was broken off, so that the last answer may be incomplete. Throws Find.
 */
export function readAnswers(bytes: Buffer, methods: readonly string[], isCut: boolean): HttpAnswer[] {
  const answers: HttpAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf("\r\n\r\n", at);
    if (end < 0 && isCut) break;
    expectThat(end >= 0, "an answer whose headers do not end", excerpt(bytes, at));
    const [line = "", ...fields] = latin1(bytes, at, end).split("\r\n");
    const status = Number(STATUS_LINE.exec(line)?.[1]);
    expectThat(status > 0, "bytes that are no answer of HTTP/1.1", excerpt(bytes, at));
    const headers = headersOf(fields);
    at = end + 4;
    if (status < 200) continue;
    const {
      body,
      next,
      trailers = NONE,
    } = bodyOf(bytes, at, { status, headers, method: methods[answers.length] ?? "" });
    if (next === undefined && isCut) break;
    expectThat(next !== undefined, "an answer whose body is not complete", excerpt(bytes, end));
    at = next as number;
    answers.push({ status, headers, body, trailers });
  }
  return answers;
}

function headersOf(lines: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name = "", value = ""] = FIELD.exec(line) ?? [];
    expectThat(name !== "", "a header of an answer is not well-formed", JSON.stringify(line.slice(0, 200)));
    const key = name.toLowerCase();
    headers.set(key, headers.has(key) ? `${headers.get(key)}, ${value}` : value);
  }
  return headers;
}

interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly method: string;
}

interface Body {
  readonly body: Buffer;
  /** Where the next answer begins; undefined if the body is incomplete. */
  readonly next?: number;
  readonly trailers?: ReadonlyMap<string, string>;
}

function bodyOf(bytes: Buffer, at: number, { status, headers, method }: Head): Body {
  const nothing = { body: Buffer.alloc(0), next: at };
  if (status === 204 || status === 304) return nothing;
  // An invalid request gets an answer with a body, even if it begins with HEAD.
  const isEmpty = at === bytes.length || bytes.indexOf("HTTP/1.1 ", at) === at;
  if (method === "HEAD" && isEmpty) return nothing;
  if (headers.get("transfer-encoding") === "chunked") return chunksOf(bytes, at);
  const length = headers.get("content-length");
  if (length === undefined) {
    expectThat(headers.get("connection") === "close", "an answer that does not say how long it is");
    return { body: bytes.subarray(at), next: bytes.length };
  }
  expectThat(/^\d+$/.test(length), "the Content-Length of an answer is no number", length);
  const end = at + Number(length);
  return end > bytes.length ? { body: bytes.subarray(at) } : { body: bytes.subarray(at, end), next: end };
}

function chunksOf(bytes: Buffer, from: number): Body {
  const chunks: Buffer[] = [];
  for (let at = from; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return { body: Buffer.concat(chunks) };
    const size = /^[\da-f]{1,8}$/i.exec(latin1(bytes, at, line));
    if (!size) throw new Find("a chunk of an answer has no size", excerpt(bytes, at));
    const length = Number.parseInt(size[0], 16);
    if (length === 0) {
      const [end, empty] = [bytes.indexOf("\r\n\r\n", line), bytes.indexOf("\r\n", line + 2) === line + 2];
      if (!empty && end < 0) return { body: Buffer.concat(chunks) };
      const fields = empty ? [] : latin1(bytes, line + 2, end).split("\r\n");
      return { body: Buffer.concat(chunks), next: empty ? line + 4 : end + 4, trailers: headersOf(fields) };
    }
    const end = line + 2 + length;
    if (end + 2 > bytes.length) return { body: Buffer.concat(chunks) };
    expectThat(latin1(bytes, end, end + 2) === "\r\n", "a chunk of an answer does not end", excerpt(bytes, end));
    chunks.push(bytes.subarray(line + 2, end));
    at = end + 2;
  }
}

const latin1 = (bytes: Buffer, from: number, to: number): string => bytes.toString("latin1", from, to);
const excerpt = (bytes: Buffer, at: number): string => JSON.stringify(latin1(bytes, at, at + 300));
