/**
 * Reads the gateway's configuration from its environment, in two pure steps: `readEnvironment` checks each variable on its
 * own, `gatewayConfig` builds the configuration and checks what concerns several variables together.
 */

import { MAX_MESSAGE_BYTES } from "@petstore/rpc/http/limits";
import { MAX_SEED } from "@petstore/runtime/clock";
import {
  ConfigError,
  duration,
  type Environment,
  type Format,
  format,
  instant,
  integer,
  list,
  oneOf,
  optional,
  path,
  readEnvironment,
  url,
  withDefault,
} from "@petstore/runtime/environment";
import { rate } from "@petstore/runtime/rate";
import { misspelledIn, settingsInForce, type Warning } from "@petstore/runtime/settings";
import type { DeprecationPolicy, Limits } from "connect-transcoder";
import { lameDuckSettings, processConfig, processSettings } from "../processes/config.ts";

export interface GatewayLimits extends Limits {
  /** One message of Connect or gRPC-Web. */
  readonly rpcBytes: number;
}

export type GatewayConfig = Readonly<ReturnType<typeof gatewayConfig>>;

const basePath: Format<string> = format("a path such as /api or /petstore/v1, without a slash at the end", (text) => {
  if (text === "/") return "";
  return /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/.test(text) ? text : undefined;
});

const publicUrl: Format<string> = format("an http or https address such as https://shop.example", (text) => {
  const { protocol, href, origin, pathname } = URL.parse(text) ?? {};
  const isPlain = href === `${origin}${pathname}` && /^(\/[\w.~-]+)*\/?$/.test(`${pathname}`);
  return /^https?:$/.test(`${protocol}`) && isPlain ? href.replace(/\/$/, "") : undefined;
});

const corsOrigin: Format<string> = format(
  "the origin of a web page such as https://shop.example, or * for all",
  (text) => (text === "*" ? text : url.read(text)),
);

/** The first descriptor that a process is started with, by the convention of systemd's sd_listen_fds(3). */
const FIRST_DESCRIPTOR = 3;

const settings = {
  ...processSettings,
  LISTEN_FDS: optional(integer(1, 1)),
  PUBLIC_URL: optional(publicUrl),
  HTTP_BASE_PATH: withDefault(basePath, ""),
  CORS_ORIGINS: withDefault(list(corsOrigin), []),
  RATE_LIMIT: optional(rate),
  MAX_BODY_BYTES: withDefault(integer(1, 16 * 1024 * 1024), 64 * 1024),
  MAX_JSON_DEPTH: withDefault(integer(1, 1000), 16),
  MAX_URL_BYTES: withDefault(integer(256, 64 * 1024), 8 * 1024),
  MAX_HEADER_BYTES: withDefault(integer(1024, 256 * 1024), 16 * 1024),
  // The services take no more, so a higher limit here would promise what they refuse.
  MAX_RPC_BYTES: withDefault(integer(1024, MAX_MESSAGE_BYTES), MAX_MESSAGE_BYTES),
  MAX_REQUEST_TIME: withDefault(duration("100ms", "10s"), 10_000),
  FAULTS_FILE: optional(path),
  FAULTS_SEED: withDefault(integer(0, MAX_SEED), 1, { FAULTS_FILE: "Name a file of faults there" }),
  DEPRECATED_AT: optional(instant),
  SUNSET_AT: optional(instant),
  ...lameDuckSettings,
  AFTER_SUNSET: withDefault(oneOf("answer", "gone"), "answer"),
};

/** What has no effect in an environment, though it looks as if it should. */
export const gatewayWarnings = (environment: Environment): readonly Warning[] => misspelledIn(environment, settings);

/** The configuration of the gateway. `terminal` says whether the log goes to one. Throws `ConfigError`. */
export function gatewayConfig(environment: Environment, terminal = process.stdout.isTTY === true) {
  const values = readEnvironment(environment, settings);
  if (values.DEPRECATED_AT !== undefined && values.SUNSET_AT !== undefined && values.SUNSET_AT < values.DEPRECATED_AT) {
    throw new ConfigError([
      `SUNSET_AT=${environment.SUNSET_AT} is before DEPRECATED_AT=${environment.DEPRECATED_AT}: ` +
        "an operation must be deprecated before it ends.",
    ]);
  }
  const common = processConfig(values, "gateway", terminal);
  return {
    ...common,
    name: "gateway" as const,
    /** Of the socket that it listens on, if it was started with one. */
    descriptor: values.LISTEN_FDS && FIRST_DESCRIPTOR,
    // With LISTEN_FDS, HOST does not say which machines reach the gateway, so it must not restrict the allowed hosts.
    ...(values.LISTEN_FDS && { allowedHosts: values.ALLOWED_HOSTS }),
    /** Where callers reach the gateway, if that is another address than its own; without a slash at the end. */
    publicUrl: values.PUBLIC_URL,
    /** In front of every path: "" or such as "/api". */
    basePath: values.HTTP_BASE_PATH,
    /** Of the web pages that may call from a browser, or "*" for all. */
    corsOrigins: values.CORS_ORIGINS,
    /** How much each caller may send to this process; undefined for no limit. */
    rate: values.RATE_LIMIT,
    limits: {
      bodyBytes: values.MAX_BODY_BYTES,
      jsonDepth: values.MAX_JSON_DEPTH,
      urlBytes: values.MAX_URL_BYTES,
      headerBytes: values.MAX_HEADER_BYTES,
      rpcBytes: values.MAX_RPC_BYTES,
      requestMs: values.MAX_REQUEST_TIME,
    },
    /** How long it goes on serving after it was told to stop. */
    lameDuckMs: values.LAME_DUCK,
    /** Names the faults that calls meet on demand. */
    faultsFile: values.FAULTS_FILE,
    /** Draws which calls these strike. */
    faultsSeed: values.FAULTS_SEED,
    /** When deprecated operations end, where that differs from the contract. */
    deprecation: {
      deprecatedAt: values.DEPRECATED_AT,
      sunsetAt: values.SUNSET_AT,
      goneAfterSunset: values.AFTER_SUNSET === "gone",
    } as DeprecationPolicy,
    settings: settingsInForce(environment, settings),
  };
}
