/** Serves annotated Connect services as HTTP/JSON, with OpenAPI. README.md says how. */
export type { Operation } from "./contract/operation.ts";
export {
  type Conflict,
  conflictsOf,
  operationsOf,
  type Refusal,
  type SurveyOptions,
  selectServed,
  surveyOf,
} from "./contract/operations.ts";
export { filesBelow } from "./descriptors.ts";
export { createErrorExit, type ErrorOptions, type ErrorRecord, unexplained } from "./errors/error-exit.ts";
export {
  type CatalogueErrors,
  type DetailJson,
  type ErrorAnswer,
  type ErrorDescription,
  type Errors,
  errorBody,
} from "./errors/forms.ts";
export { type Catalogue, HttpError, UpstreamFailure } from "./errors/http-error.ts";
export { openApiDocument } from "./openapi/document.ts";
export { type Json, type JsonObject, jsonText } from "./openapi/json.ts";
export type { About, Sources } from "./openapi/sources.ts";
export { type DeprecationPolicy, effectiveDates } from "./policy/deprecation.ts";
export type { MetadataOptions } from "./policy/metadata.ts";
export { splitTarget } from "./request/http.ts";
export { parseQuery } from "./request/parameters.ts";
export { logUnknownValues, type TellUnknown } from "./response/scalars.ts";
export { arrivedTooLate } from "./server/admission.ts";
export { markArrivals, serverOptions } from "./server/arrival.ts";
export { type EarlyRefusals, refuseEarly } from "./server/error-answers.ts";
export { isGone } from "./server/node-http.ts";
export type { Limits, OpenApiOptions, ServerOptions, TranscoderOptions } from "./server/options.ts";
export { transcoder } from "./server/plugin.ts";
