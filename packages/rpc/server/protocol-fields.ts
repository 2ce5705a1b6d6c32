/** Limits the length of protocol fields, which errors quote, and the timeouts in them. */
import type { IncomingHttpHeaders } from "node:http";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { LONGEST_TIMER_MS } from "../call.ts";

/** No valid protocol header or parameter of gRPC or Connect is longer; for a parameter this includes its name. */
const MAX_LENGTH = 128;
const OF_PROTOCOL = /^(connect|grpc)-|-encoding$/;

/**
 * Cuts the protocol headers (encodings, timeouts, versions) of a call, and the parameters of a Connect GET, to 128
 * characters, because errors about them quote them whole. A value that is cut is as invalid as it was before. A timeout that
 * is too long for a timer becomes the longest one that is not.
 */
export function shortenProtocolFields<C extends UniversalServerRequest>(call: C): C {
  shortenHeaders(call.header);
  if (call.method !== "GET") return call;
  const url = new URL(call.url);
  const shorten = (part: string) => (part.length <= MAX_LENGTH || isMessage(part) ? part : part.slice(0, MAX_LENGTH));
  url.search = url.search.slice(1).split("&").map(shorten).join("&");
  return { ...call, url: url.href };
}

/** Whether a part of a query is the message of a Connect GET, which is never cut. */
export const isMessage = (part: string): boolean => new URLSearchParams(part).has("message");

/** The headers of a request as Connect passes them on, with those of the protocol cut to 128 characters. */
export function shortHeadersOf(fields: IncomingHttpHeaders): Headers {
  const header = new Headers();
  for (const [name, value] of Object.entries(fields))
    if (!name.startsWith(":")) for (const one of [value ?? []].flat()) header.append(name, one);
  shortenHeaders(header);
  return header;
}

function shortenHeaders(header: Headers): void {
  for (const [name, value] of [...header])
    if (OF_PROTOCOL.test(name) && value.length > MAX_LENGTH) header.set(name, value.slice(0, MAX_LENGTH));
  shortenTimeouts(header);
}

/** Connect sets a timer to whatever timeout a caller asks for. */
function shortenTimeouts(header: Headers): void {
  const isTooLong = ({ timeoutMs = 0 }) => timeoutMs > LONGEST_TIMER_MS;
  if (isTooLong(parseConnectTimeout(header.get("connect-timeout-ms"), Number.POSITIVE_INFINITY)))
    header.set("connect-timeout-ms", String(LONGEST_TIMER_MS));
  if (isTooLong(parseGrpcTimeout(header.get("grpc-timeout"), Number.POSITIVE_INFINITY)))
    header.set("grpc-timeout", `${Math.floor(LONGEST_TIMER_MS / 1000)}S`);
}
