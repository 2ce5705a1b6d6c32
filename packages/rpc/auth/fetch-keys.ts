/** Where an issuer's keys come from: its own address, or a file. */
import { readFile } from "node:fs/promises";
import { get as getHttp, type RequestOptions } from "node:http";
import { get as getHttps } from "node:https";
import { problemOf } from "@petstore/runtime/watched-files";

const MAX_BYTES = 256 * 1024;
const TIMEOUT_MS = 5_000;

export const isAddress = (place: string): boolean => /^https?:\/\//.test(place);

/**
 * The document at an address, or in a file. Rejects when it is not there, not JSON, too large or too slow; the message quotes
 * neither the path nor what was found.
 */
export async function fetchKeys(place: string): Promise<unknown> {
  const text = await (isAddress(place) ? download(new URL(place)) : read(place));
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
}

const read = (path: string): Promise<string> =>
  readFile(path, "utf8").catch((error) => {
    throw new Error(problemOf(error, [path]));
  });

/** Follows no redirect: the keys are where the operator said. */
function download(url: URL): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // As by default, but not to be switched off by NODE_TLS_REJECT_UNAUTHORIZED.
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
    response.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    response.on("error", reject);
  });
  request.on("error", reject);
  return promise;
}
