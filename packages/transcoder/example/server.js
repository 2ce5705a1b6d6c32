import { createRouterTransport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { serverOptions, transcoder } from "connect-transcoder";
import { fastify } from "fastify";
import { ShelfService } from "./gen/shelf_pb.js";
import { routes } from "./service.js";

const { SHELF_URL, PORT = "8080" } = process.env;
// The service in another process, or in this one.
const transport = SHELF_URL ? createGrpcTransport({ baseUrl: SHELF_URL }) : createRouterTransport(routes);
/** @type {import("connect-transcoder").TranscoderOptions} */
const options = {
  services: [{ desc: ShelfService, transport }],
  codec: "exact", // isbn as a JSON integer: the default is proto3 JSON, which has 64 bits as a string
  openApi: { title: "Shelf" },
};
const app = fastify(serverOptions(options));
await app.register(transcoder, options);
await app.listen({ port: Number(PORT) });
