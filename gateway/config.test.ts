import { inspect } from "node:util";
import { ConfigError } from "@petstore/runtime/environment";
import { describe, expect, test } from "vitest";
import { gatewayConfig } from "./config.ts";

const INTERNAL_SECRET = "a-secret-of-the-petstore-under-test";
const config = (environment: Record<string, string> = {}) => gatewayConfig({ INTERNAL_SECRET, ...environment }, false);
const problem = (environment: Record<string, string>): string => {
  try {
    config(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  return expect.fail("it is a configuration");
};

test("what is not set has its default", () => {
  expect(config()).toMatchObject({
    name: "gateway",
    host: "127.0.0.1",
    port: 8080,
    urls: {
      pet: ["http://127.0.0.1:8081"],
      category: ["http://127.0.0.1:8082"],
      order: ["http://127.0.0.1:8083"],
      inventory: ["http://127.0.0.1:8084"],
    },
    publicUrl: undefined,
    basePath: "",
    corsOrigins: [],
    auth: undefined,
    allowedHosts: [],
    rate: undefined,
    trustedProxies: [],
    limits: {
      bodyBytes: 65_536,
      jsonDepth: 16,
      urlBytes: 8192,
      headerBytes: 16_384,
      rpcBytes: 1_048_576,
      requestMs: 10_000,
    },
    lameDuckMs: 500,
    faultsFile: undefined,
    faultsSeed: 1,
    deprecation: { deprecatedAt: undefined, sunsetAt: undefined, goneAfterSunset: false },
  });
});

test("one base moves all ports, an address of its own goes before it", () => {
  const { port, urls } = config({ PORT_BASE: "9080", PET_URL: "http://pets:80" });
  expect([port, urls.pet, urls.inventory]).toEqual([9080, ["http://pets"], ["http://127.0.0.1:9084"]]);
});

test.each([
  ["https://shop.example", "https://shop.example"],
  ["http://shop.example:8080/", "http://shop.example:8080"],
  ["https://shop.example/petstore/v1/", "https://shop.example/petstore/v1"],
  ["http://[::1]:8080", "http://[::1]:8080"],
])("PUBLIC_URL=%s is %s", (text, address) => {
  expect(config({ PUBLIC_URL: text }).publicUrl).toBe(address);
});

test("what is set is read", () => {
  const { basePath, corsOrigins, limits, lameDuckMs, deprecation } = config({
    LAME_DUCK: "5s",
    HTTP_BASE_PATH: "/petstore/v1",
    CORS_ORIGINS: "https://shop.example, http://localhost:3000",
    MAX_BODY_BYTES: "1000",
    MAX_REQUEST_TIME: "2500ms",
    DEPRECATED_AT: "2026-12-01",
    SUNSET_AT: "2028-01-01T00:00:00Z",
    AFTER_SUNSET: "gone",
  });
  expect([basePath, corsOrigins]).toEqual(["/petstore/v1", ["https://shop.example", "http://localhost:3000"]]);
  expect([limits.bodyBytes, limits.requestMs, lameDuckMs]).toEqual([1000, 2500, 5000]);
  expect(deprecation).toEqual({
    deprecatedAt: Date.parse("2026-12-01"),
    sunsetAt: Date.parse("2028-01-01"),
    goneAfterSunset: true,
  });
});

describe("a wrong value is one line with its name, itself and what is allowed", () => {
  test.each([
    ["PORT", "99999", "PORT=99999 is wrong: it must be a whole number from 0 to 65535."],
    ["HTTP_BASE_PATH", "api/", "HTTP_BASE_PATH=api/ is wrong: it must be a path such as /api"],
    ["HTTP_BASE_PATH", "/a:b", "HTTP_BASE_PATH=/a:b is wrong"],
    ["PUBLIC_URL", "shop.example", "PUBLIC_URL=shop.example is wrong: it must be an http or https address such as"],
    ["PUBLIC_URL", "ftp://shop.example", "PUBLIC_URL=ftp://shop.example is wrong"],
    ["PUBLIC_URL", "https://shop.example/?a=b", "PUBLIC_URL=https://shop.example/?a=b is wrong"],
    ["PUBLIC_URL", "https://user:word@shop.example", "is wrong"],
    ["PUBLIC_URL", "https://shop.example//", "PUBLIC_URL=https://shop.example// is wrong"],
    [
      "ALLOWED_HOSTS",
      "shop.example:8080",
      "ALLOWED_HOSTS=shop.example:8080 is wrong: it must be a comma-separated list",
    ],
    ["CORS_ORIGINS", "shop.example", "CORS_ORIGINS=shop.example is wrong: it must be a comma-separated list"],
    ["AUTH_MODE", "basic", "AUTH_MODE=basic is wrong: it must be none or keys or jwt or keys,jwt."],
    ["MAX_BODY_BYTES", "64KiB", "MAX_BODY_BYTES=64KiB is wrong: it must be a whole number"],
    ["MAX_RPC_BYTES", "2000000", "MAX_RPC_BYTES=2000000 is wrong: it must be a whole number from 1024 to 1048576."],
    ["MAX_REQUEST_TIME", "1m", "MAX_REQUEST_TIME=1m is wrong: it must be a time from 100ms to 10s"],
    ["RATE_LIMIT", "600", "RATE_LIMIT=600 is wrong: it must be a rate such as 600/min"],
    ["TRUST_PROXY", "nginx", "TRUST_PROXY=nginx is wrong: it must be a comma-separated list"],
    ["LAME_DUCK", "2m", "LAME_DUCK=2m is wrong: it must be a time from 0s to 60s"],
    ["SUNSET_AT", "soon", "SUNSET_AT=soon is wrong: it must be a moment"],
    ["AFTER_SUNSET", "410", "AFTER_SUNSET=410 is wrong: it must be answer or gone."],
  ])("%s=%s", (name, value, line) => {
    expect(problem({ [name]: value })).toContain(line);
    expect(problem({ [name]: value })).not.toContain("\n");
  });
});

test("all wrong values are told at once", () => {
  expect(problem({ PORT: "x", AUTH_MODE: "x" }).split("\n")).toHaveLength(2);
});

test("a sunset before the deprecation is refused", () => {
  expect(problem({ DEPRECATED_AT: "2027-01-02", SUNSET_AT: "2027-01-01" })).toBe(
    "SUNSET_AT=2027-01-01 is before DEPRECATED_AT=2027-01-02: an operation must be deprecated before it ends.",
  );
});

test("listening beyond loopback without credentials has to be asked for in so many words", () => {
  expect(problem({ HOST: "0.0.0.0" })).toContain("ALLOW_UNAUTHENTICATED=beyond-loopback");
  expect(config({ HOST: "0.0.0.0", ALLOW_UNAUTHENTICATED: "beyond-loopback" }).host).toBe("0.0.0.0");
});

test("on loopback only the names of loopback are answered, beyond it any, and names that are allowed are added", () => {
  const beyond = { HOST: "0.0.0.0", ALLOW_UNAUTHENTICATED: "beyond-loopback" };
  expect(config({ HOST: "::1" }).allowedHosts).toEqual([]);
  expect(config(beyond).allowedHosts).toBeUndefined();
  expect(config({ ALLOWED_HOSTS: "shop.example, 10.0.0.7" }).allowedHosts).toEqual(["shop.example", "10.0.0.7"]);
  expect(config({ ...beyond, ALLOWED_HOSTS: "shop.example" }).allowedHosts).toEqual(["shop.example"]);
});

test("the secret can't be printed", () => {
  const printed = [String(config().internalSecret), JSON.stringify(config()), inspect(config(), { depth: 9 })].join();
  expect(printed).not.toContain(INTERNAL_SECRET);
  expect(problem({ INTERNAL_SECRET: "too-short" })).not.toContain("too-short");
});
