/** Reads what `GET /events` sends as lines of JSON (application/x-ndjson). */

/** In characters. Every event of the petstore is shorter. */
const MAX_LINE = 1 << 20;

/**
 * Yields each complete line, parsed. A last line that is incomplete is dropped.
 * @throws SyntaxError for what is not JSON.
 */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunksOf(body)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) throw new SyntaxError("A line of events has no end.");
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

/** Safari can't iterate over a stream. */
export async function* chunksOf<T>(body: ReadableStream<T>): AsyncGenerator<T> {
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** What a line says of a record. */
export interface CloudEvent {
  readonly id: string;
  readonly time?: string;
  readonly etag?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The record as callers have it. A status that only a later version knows is a number there, and text here. */
export const recordIn = ({ data, etag = "" }: CloudEvent): object => ({
  ...data,
  ...("status" in data && { status: `${data.status}` }),
  etag,
});
