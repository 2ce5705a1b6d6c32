/** Reads bodies that are one message, within their limits. */
import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import { HttpError } from "../errors/http-error.ts";
import { readBody } from "../request/body.ts";
import { after } from "./after.ts";
import type { Limits } from "./options.ts";

export type ReadBody = (request: FastifyRequest, payload: IncomingMessage) => Promise<Buffer>;

const TOO_LARGE = new HttpError("PAYLOAD_TOO_LARGE", "The body is too large.");
const TOO_SLOW = new HttpError("REQUEST_TIMEOUT", "The request did not arrive in time. Nothing was done.", {
  connection: "close",
});

/** `isTimed` where nobody else ends a request that arrives too slowly. */
export function bodyReader({ bodyBytes, requestMs }: Limits, clock: () => number, isTimed: boolean): ReadBody {
  return async ({ headers, arrivedAt }, payload) => {
    const refuse = (_piece: unknown, length: number) => {
      if (length > bodyBytes) throw TOO_LARGE;
    };
    refuse(undefined, Number(headers["content-length"]));
    const body = readBody(payload, refuse);
    if (!isTimed) return body;
    return new Promise((resolve, reject) => {
      const cancel = after(arrivedAt + requestMs - clock(), () => reject(TOO_SLOW));
      body.then(resolve, reject).finally(cancel);
    });
  };
}
