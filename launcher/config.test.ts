import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openFilesLimit } from "../processes/open-files.ts";
import { launcherArguments, launcherConfig, launcherWarnings } from "./config.ts";

test("the processes share a secret that is new each time, unless one is set", () => {
  const secret = () => launcherConfig({}, false).environment.INTERNAL_SECRET;
  expect(secret()).toMatch(/^[0-9a-f]{64}$/);
  expect(secret()).not.toBe(secret());
  const own = { INTERNAL_SECRET: "0123456789abcdef0123456789abcdef" };
  expect(launcherConfig(own, false).environment).toMatchObject(own);
});

test("a secret in a file is left where it is", () => {
  const dir = mkdtempSync(join(tmpdir(), "secret-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, "internal");
  writeFileSync(file, "0123456789abcdef0123456789abcdef\n");
  const { environment } = launcherConfig({ INTERNAL_SECRET_FILE: file }, false);
  expect([environment.INTERNAL_SECRET_FILE, environment.INTERNAL_SECRET]).toEqual([file, undefined]);
});

test("they need no secret where they know each other by certificates", () => {
  const tls = { TLS_CERT: "cert.pem", TLS_KEY: "key.pem", INTERNAL_TLS_CA: "ca.pem" };
  expect(launcherConfig(tls, false).environment).toMatchObject(tls);
  expect(Object.keys(launcherConfig(tls, false).environment)).not.toContain("INTERNAL_SECRET");
});

test("on a terminal they log warnings and worse, unless told otherwise", () => {
  const level = (LOG_LEVEL: string | undefined, terminal: boolean) =>
    launcherConfig({ LOG_LEVEL }, terminal).environment.LOG_LEVEL;
  expect([level(undefined, true), level(undefined, false), level("debug", true)]).toEqual(["warn", undefined, "debug"]);
});

test("PORT and the services' addresses, which are for one process alone, are not handed on", () => {
  const { environment } = launcherConfig({ PORT: "1", PET_URL: "http://a", PORT_BASE: "9080", PATH: "/bin" }, false);
  expect(environment).toMatchObject({ PORT_BASE: "9080", PATH: "/bin" });
  expect(Object.keys(environment)).not.toContain("PORT");
  expect(Object.keys(environment)).not.toContain("PET_URL");
});

test("few files that may be open bound the connections of an address, unless proxies have many callers", () => {
  const ports = Math.max(1, Math.floor(openFilesLimit() / 256)); // so that each has so few
  const environment = { MAX_CONNECTIONS: "10000" };
  const bound = (more: Record<string, string>) =>
    launcherConfig({ ...environment, ...more }, false, { ports }).environment.MAX_CONNECTIONS_PER_ADDRESS;
  expect(bound({})).toMatch(/^\d+$/);
  expect(bound({ TRUST_PROXY: "10.0.0.1" })).toBeUndefined();
});

describe("what has no effect", () => {
  const texts = (environment: Record<string, string>) => launcherWarnings(environment).map(({ text }) => text);

  test("is told with what to set", () => {
    expect(texts({ PORT: "3000" })).toEqual([
      "PORT has no effect here, for the petstore has five: set PORT_BASE=3000, the first of them, instead.",
    ]);
    expect(texts({ PORT: "80" })[0]).toContain("set PORT_BASE, the first");
    expect(texts({ PET_URL: "http://a", REPLICA: "2" })).toEqual([
      "REPLICA has no effect here: it is for a process that is started alone.",
      "PET_URL has no effect here: it is for a process that is started alone.",
    ]);
    for (const MONGODB of ["MONGODB_URI", "MONGODB_URI_FILE"])
      expect(texts({ EVENTS_RETENTION: "7d", [MONGODB]: "x" })[0]).toMatch(
        /^EVENTS_RETENTION has no effect with MONGODB_URI/,
      );
    expect(texts({ AUTHMODE: "keys" })).toEqual(["AUTHMODE has no effect: perhaps AUTH_MODE is meant."]);
  });

  test("does not reach the processes, which would tell it again", () => {
    const given = { AUTHMODE: "keys", EVENTS_RETENTION: "7d", MONGODB_URI: "mongodb://localhost", PATH: "/bin" };
    const names = Object.keys(launcherConfig(given, false).environment);
    expect(names).toEqual(expect.arrayContaining(["MONGODB_URI", "PATH"]));
    expect(names.filter((name) => ["AUTHMODE", "EVENTS_RETENTION"].includes(name))).toEqual([]);
    const warnings = launcherWarnings({ AUTHMODE: "keys" });
    const others = Object.keys(launcherConfig(given, false, { warnings }).environment);
    expect(others.filter((name) => ["AUTHMODE", "EVENTS_RETENTION"].includes(name))).toEqual(["EVENTS_RETENTION"]);
    expect(() => launcherConfig({ ...given, EVENTS_RETENTION: "long" }, false)).toThrow(
      "EVENTS_RETENTION=long is wrong",
    );
  });

  test("is nothing that has one, or is usual", () => {
    expect(texts({ PORT_BASE: "9080", EVENTS_RETENTION: "7d", PET_URL: " ", PATH: "/bin" })).toEqual([]);
    expect(texts({ DATA_DIR: "data", MONGODB_URI: "mongodb://localhost" })).toEqual([]);
  });
});

test("DATA_DIR is of no concern with MONGODB_URI", () => {
  expect(launcherConfig({ DATA_DIR: "here" }, false).dataDir).toBe("here");
  expect(launcherConfig({ MONGODB_URI: "mongodb://localhost" }, false).dataDir).toBeUndefined();
});

test.each([
  ["DATA_DIR", "~/petstore", /^DATA_DIR=~\/petstore is wrong: it must be a path .* nothing replaces ~/],
  ["DATA_DIR", "file:/tmp/f", /^DATA_DIR=file:\/tmp\/f is wrong: .* no URL/],
  ["DATA_DIR", '"data"', /^DATA_DIR is in quotes/],
  ["PORT_BASE", '"8080"', /^PORT_BASE is in quotes, .* --env-file/],
  ["TLS_CERT", "~/cert.pem", /^TLS_CERT=~\/cert\.pem is wrong: it must be a path/],
  ["API_KEYS_FILE", "$HOME/keys.json", /^API_KEYS_FILE=\$HOME\/keys\.json is wrong: it must be a path/],
  ["JWT_JWKS", "~/jwks.json", /^JWT_JWKS=~\/jwks\.json is wrong: .* or a path/],
])("%s=%s, which a shell would have replaced, is refused with what to write", (name, value, problem) => {
  expect(() => launcherConfig({ [name]: value }, false)).toThrow(problem);
});

test("the command line says who started it, if the shell does", () => {
  const startedBy = (argument: string) => launcherArguments([argument], {}).startedBy;
  expect(startedBy("--started-by=1234")).toBe(1234);
  for (const word of ["$PPID", "", "%PPID%"]) expect(startedBy(`--started-by=${word}`)).toBeUndefined();
  expect(launcherArguments(["--started-by=7", "--single-process"], {})).toEqual({ singleProcess: true, startedBy: 7 });
});

test("LAME_DUCK is known, for the stop waits as much longer", () => {
  expect([launcherConfig({}, false).lameDuckMs, launcherConfig({ LAME_DUCK: "5s" }, false).lameDuckMs]).toEqual([
    500, 5000,
  ]);
  expect(() => launcherConfig({ LAME_DUCK: "long" }, false)).toThrow(/^LAME_DUCK=long is wrong/);
});

describe("REPLICAS", () => {
  const mongodb = { MONGODB_URI: "mongodb://localhost" };

  test("reaches the processes as it is, and a gateway that is not alone shares its port", () => {
    const { environment, replicas, sharedPort } = launcherConfig({ ...mongodb, REPLICAS: "gateway:4, pet:2" }, false);
    expect(environment.REPLICAS).toBe("gateway:4, pet:2");
    expect([...replicas]).toEqual([
      ["gateway", 4],
      ["pet", 2],
    ]);
    expect(sharedPort).toEqual({ host: "127.0.0.1", port: 8080 });
    expect(launcherConfig({ ...mongodb, REPLICAS: "pet:2" }, false).sharedPort).toBeUndefined();
  });

  test("several of a service need MongoDB, several gateways don't", () => {
    expect(() => launcherConfig({ REPLICAS: "gateway:2,pet:2" }, false)).toThrow(
      "REPLICAS=gateway:2,pet:2 needs MongoDB, for the embedded store lets in one process of each service: set " +
        "MONGODB_URI to a replica set (one member is enough), or ask for several gateways alone.",
    );
    expect(launcherConfig({ REPLICAS: "gateway:2,pet:1" }, false).dataDir).toBe("data");
  });

  test("REPLICA and LISTEN_FDS, which are for one process alone, are not handed on", () => {
    const names = Object.keys(launcherConfig({ REPLICA: "7", LISTEN_FDS: "1" }, false).environment);
    expect(names).not.toContain("REPLICA");
    expect(names).not.toContain("LISTEN_FDS");
  });
});
