/** Reads lines of JSON (application/x-ndjson) from the chunks of a connection. */

/** In characters. Every event of the petstore is shorter. */
const MAX_LINE = 1 << 20;

/** Yields each complete line, parsed. A last line that is incomplete is dropped. Throws SyntaxError for what is not JSON. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > MAX_LINE) throw new SyntaxError("A line of events has no end.");
    for (const line of parts) if (line !== "") yield JSON.parse(line);
  }
}
