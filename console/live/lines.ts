/** Lines of JSON (application/x-ndjson), as they come in over a connection. */

/** No event of the petstore's is as long. */
const MAX_LINE = 1 << 20;

/** Each line that is complete; what the connection broke off is dropped. Fails with SyntaxError for what is not JSON. */
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
