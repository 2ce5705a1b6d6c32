/** Sends the request of a case as it stands, with nothing made better on the way. */
import { Agent, request as send } from "node:http";
import type { CaseRequest } from "./case.ts";

export interface Asked {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly bytes: Buffer;
  /** It ended before its end. */
  readonly isBroken: boolean;
}

export function ask(port: number, { method = "GET", path, headers = {}, body, text, bytes }: CaseRequest) {
  const content = body !== undefined ? JSON.stringify(body) : bytes === undefined ? text : Buffer.from(bytes, "base64");
  const { promise, resolve, reject } = Promise.withResolvers<Asked>();
  const agent = new Agent();
  const length = content === undefined ? undefined : Buffer.byteLength(content);
  const request = send({
    host: "127.0.0.1",
    port,
    method,
    path,
    headers: { ...headers, ...(length !== undefined && { "content-length": String(length) }) } as never,
    agent,
  });
  request.once("error", reject);
  request.once("response", (response) => {
    const pieces: Buffer[] = [];
    response.on("data", (piece: Buffer) => pieces.push(piece));
    response.on("error", () => {});
    response.once("close", () =>
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        bytes: Buffer.concat(pieces),
        isBroken: !response.complete,
      }),
    );
  });
  request.end(content);
  return promise.finally(() => agent.destroy());
}
