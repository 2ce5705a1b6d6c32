/** The answer to an RPC that is not served here, in the words of the protocol that asks. */
import type { IncomingMessage, ServerResponse } from "node:http";

const MESSAGE = "There is no such RPC here.";
/** gRPC's status of the same name. */
const UNIMPLEMENTED = "12";
/** The flag of the message that ends a stream of Connect. */
const END_STREAM = 0b10;

/** Drops the rest of the request, so that its client comes to read the answer. */
export function answerUnknownRpc(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const error = { code: "unimplemented", message: MESSAGE };
  if (/^application\/grpc(-web(-text)?)?(\+[\w.-]+)?$/.test(type)) {
    // Trailers-Only: gRPC's "Responses" allows the status among the headers when there is no message.
    response.writeHead(200, { "content-type": type, "grpc-status": UNIMPLEMENTED, "grpc-message": MESSAGE }).end();
  } else if (/^application\/connect\+[\w.-]+$/.test(type)) {
    const body = Buffer.from(JSON.stringify({ error }));
    const prefix = Buffer.alloc(5, END_STREAM);
    prefix.writeUInt32BE(body.length, 1);
    response.writeHead(200, { "content-type": type }).end(Buffer.concat([prefix, body]));
  } else if (/^application\/(proto|json)$/.test(type) || /[?&]connect=v1(&|$)/.test(request.url ?? "")) {
    response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify(error));
  } else {
    response.writeHead(404, { "content-type": "text/plain" }).end(`${MESSAGE}\n`);
  }
}
