/** Durations of requests and calls, by the names and with the bounds that OpenTelemetry's semantic conventions recommend. */
import { histogram } from "./declaration.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

export const CALL_LABELS = ["rpc_system_name", "rpc_method", "rpc_status_code"] as const;

export const HTTP_REQUESTS = histogram(
  "http_server_request_duration_seconds",
  "Requests to the gateway, until their answer was over. Status 499: the caller left before it began.",
  ["http_request_method", "http_route", "http_response_status_code"],
  SECONDS,
);

export const RPC_CALLS_SERVED = histogram(
  "rpc_server_call_duration_seconds",
  "Calls that a service was asked for, streams until their end. Without a status code they succeeded.",
  CALL_LABELS,
  SECONDS,
);

export const RPC_CALLS_MADE = histogram(
  "rpc_client_call_duration_seconds",
  "Calls to a service with all their attempts, streams until their end. Without a status code they succeeded.",
  CALL_LABELS,
  SECONDS,
);
