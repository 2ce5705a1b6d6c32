/**
 * What the RFCs of HTTP ask of a server and Node leaves to it: targets, hosts, media types and bodies of requests, and
 * answers to what is not HTTP. Loads nothing of Fastify. `connect-transcoder/http`.
 */
export { weakTagAdvice } from "./policy/conditional.ts";
export { isCharset, isUtf8, parseType } from "./policy/media.ts";
export { hostInTarget, hostProblem, readBody, splitTarget, transferProblem, withBrackets } from "./request/http.ts";
export { isGone, NO_PROXY, writeResponse } from "./server/node-http.ts";
