import { createServer } from "node:http2";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { routes } from "./service.js";

createServer(connectNodeAdapter({ routes })).listen(Number(process.env.PORT ?? "9090"), "127.0.0.1");
