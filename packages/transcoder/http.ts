/**
 * What the RFCs of HTTP ask of a server and Node leaves to it: targets, hosts, media types and bodies of requests, and
 * answers to what is not HTTP. Loads nothing of Fastify. `connect-transcoder/http`.
 */
export { isCharset, isUtf8, parseType } from "./policy/media.ts";
export { weakTagAdvice } from "./policy/weak-tags.ts";
export { readBody } from "./request/body.ts";
export { hostInTarget, hostProblem, splitTarget, transferProblem, withBrackets } from "./request/head.ts";
export { isGone, NO_PROXY, writeResponse } from "./server/node-http.ts";
