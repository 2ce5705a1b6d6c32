/** Headers of every answer. */
import { REQUEST_ID_HEADER } from "../request/request-id.ts";

export const commonHeaders = (requestId: string, apiVersion: string): Record<string, string> => ({
  [REQUEST_ID_HEADER]: requestId,
  "api-version": apiVersion,
  "x-content-type-options": "nosniff",
});
