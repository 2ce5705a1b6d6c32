/** Fetches an issuer's keys, from its address or from a file. */
import { get as getHttp, type RequestOptions } from "node:http";
import { get as getHttps } from "node:https";
import { problemOf, readText } from "@petstore/runtime/watched-files";

const MAX_BYTES = 256 * 1024;
const TIMEOUT_MS = 5_000;

export const isAddress = (location: string): boolean => /^https?:\/\//.test(location);

/**
 * The JSON document at an address, or in a file. Rejects if it is missing or not JSON, and at an address if it has more than
 * 256 KiB or takes more than 5 s. The message quotes neither the path nor the content.
 */
export async function fetchKeys(location: string): Promise<unknown> {
  const text = await (isAddress(location) ? download(new URL(location)) : read(location));
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
}

const read = (path: string): Promise<string> =>
  readText(path).catch((error) => {
    throw new Error(problemOf(error, [path]));
  });

/** Follows no redirects: the keys must be at the configured address. */
function download(url: URL): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // The default, but NODE_TLS_REJECT_UNAUTHORIZED can't switch it off.
  const options: RequestOptions & { rejectUnauthorized: boolean } = {
    headers: { accept: "application/jwk-set+json, application/json" },
    rejectUnauthorized: true,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  };
  const request = (url.protocol === "https:" ? getHttps : getHttp)(url, options, (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    if (response.statusCode !== 200) request.destroy(new Error(`the issuer's keys: HTTP ${response.statusCode}`));
    response.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) request.destroy(new Error(`the issuer's keys have more than ${MAX_BYTES} bytes`));
      else chunks.push(chunk);
    });
    response.on("end", () => resolve(new TextDecoder().decode(Buffer.concat(chunks))));
    response.on("error", reject);
  });
  request.on("error", reject);
  return promise;
}
