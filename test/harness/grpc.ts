/** A gRPC client as other teams' services use it, by connect-node. */
import type { Http2Session } from "node:http2";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransportOptions, Http2SessionManager } from "@connectrpc/connect-node";

const ignore = () => {};

export interface Grpc {
  readonly transport: Transport;
  close(): void;
}

export function openGrpc(baseUrl: string, options: Omit<GrpcTransportOptions, "baseUrl"> = {}): Grpc {
  const sessions = new Http2SessionManager(baseUrl);
  const heard = new WeakSet<Http2Session>();
  const sessionManager: GrpcTransportOptions["sessionManager"] = {
    authority: sessions.authority,
    // connect-node 2.2 stops listening to a connection before its last error (connect-es issue 1768), which would end the tests
    // when a server restarts.
    async request(...args) {
      const stream = await sessions.request(...args);
      if (stream.session && !heard.has(stream.session)) heard.add(stream.session.on("error", ignore));
      return stream;
    },
    notifyResponseByteRead: (stream) => sessions.notifyResponseByteRead(stream),
  };
  return { transport: createGrpcTransport({ ...options, baseUrl, sessionManager }), close: () => sessions.abort() };
}
