/** Texts cut to what an error may repeat of a request. `connect-transcoder/excerpt`. */
export { excerpt, firstOf, joinFirst, MAX_ERROR_BYTES } from "./errors/http-error.ts";
