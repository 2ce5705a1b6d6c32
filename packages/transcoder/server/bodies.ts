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

export type InTime = <T>(request: FastifyRequest, arrival: Promise<T>) => Promise<T>;

/** Ends the wait for what arrives too slowly, if `isTimed`: else Node does. */
export function arrivalTimer({ requestMs }: Limits, clock: () => number, isTimed: boolean): InTime {
  if (!isTimed) return (_, arrival) => arrival;
  return ({ arrivedAt }, arrival) =>
    new Promise((resolve, reject) => {
      const cancel = after(arrivedAt + requestMs - clock(), () => reject(TOO_SLOW));
      arrival.then(resolve, reject).finally(cancel);
    });
}

export function bodyReader({ bodyBytes }: Limits, inTime: InTime): ReadBody {
  return async (request, payload) => {
    const { headers } = request;
    const refuse = (_piece: unknown, length: number) => {
      if (length > bodyBytes) throw TOO_LARGE;
    };
    refuse(undefined, Number(headers["content-length"]));
    return inTime(request, readBody(payload, refuse));
  };
}
