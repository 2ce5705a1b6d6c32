/**
 * Keeps undici out of a process until something calls `fetch` or makes Headers: some 6 MB and 50 ms of its start. What is
 * imported of a module of Node's reads all that this module exports, and three exports of node:http, of a WebSocket client,
 * are undici's.
 *
 * To be imported before whatever leads to node:http, by an entry file that then loads the rest with `import()`: in one
 * graph of imports, modules of Node's are read before the first file runs.
 */
import { getBuiltinModule } from "node:process";

const http: Partial<Record<string, unknown>> = getBuiltinModule("node:http");
for (const name of ["WebSocket", "CloseEvent", "MessageEvent"]) delete http[name];
