/**
 * Keeps undici out of a process until something calls `fetch` or makes Headers: some 6 MB and 50 ms of its start. An
 * import from one of Node's modules reads all exports of that module, and three exports of node:http, for a WebSocket
 * client, are undici's.
 *
 * Must be imported before anything that leads to node:http, by an entry file that then loads the rest with `import()`: in
 * one graph of imports, Node's modules are read before the first file runs.
 */
import { getBuiltinModule } from "node:process";

const http: Partial<Record<string, unknown>> = getBuiltinModule("node:http");
for (const name of ["WebSocket", "CloseEvent", "MessageEvent"]) delete http[name];
