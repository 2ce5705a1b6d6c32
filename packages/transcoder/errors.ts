/** The codes of errors with their statuses and meanings, and gRPC's codes by name. `connect-transcoder/errors`. */
export { type Catalogue, codeNamed, codeOf, nameOf, type Reason, reasonsOf, statusOf } from "./errors/http-error.ts";
