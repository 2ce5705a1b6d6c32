/** How long the fields of a protocol may be that its errors quote. */
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";

/** No header or parameter of gRPC or Connect that means something is longer. */
const MAX_LENGTH = 128;
const OF_PROTOCOL = /^(connect|grpc)-|-encoding$/;

/**
 * A call whose protocol headers (encodings, timeouts, versions) and parameters of a Connect GET are cut to a length, for
 * the errors about them quote them whole. What is cut was wrong before and is wrong afterwards.
 */
export function shortenProtocolFields<C extends UniversalServerRequest>(call: C): C {
  for (const [name, value] of [...call.header])
    if (OF_PROTOCOL.test(name) && value.length > MAX_LENGTH) call.header.set(name, value.slice(0, MAX_LENGTH));
  if (call.method !== "GET") return call;
  const url = new URL(call.url);
  for (const [name, value] of [...url.searchParams])
    if (name !== "message" && value.length > MAX_LENGTH) url.searchParams.set(name, value.slice(0, MAX_LENGTH));
  return { ...call, url: url.href };
}
