import { serverOptions, transcoder } from "connect-transcoder";
import { fastify } from "fastify";
import { ShelfService } from "./gen/shelf_pb.js";
import { transport } from "./service.js";

const options = { services: [{ desc: ShelfService, transport }], openApi: { title: "Shelf" } };
const app = fastify(serverOptions(options));
await app.register(transcoder, options);
await app.listen({ port: Number(process.env.PORT ?? 8080) });
