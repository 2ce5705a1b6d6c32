import { expect, test } from "vitest";
import { launcherConfig } from "./config.ts";

test("the processes share a secret that is new each time, unless one is set", () => {
  const secret = () => launcherConfig({}, false).environment.INTERNAL_SECRET;
  expect(secret()).toMatch(/^[0-9a-f]{64}$/);
  expect(secret()).not.toBe(secret());
  const own = { INTERNAL_SECRET: "0123456789abcdef" };
  expect(launcherConfig(own, false).environment).toMatchObject(own);
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

test("DATA_DIR is of no concern with MONGODB_URI", () => {
  expect(launcherConfig({ DATA_DIR: "here" }, false).dataDir).toBe("here");
  expect(launcherConfig({ MONGODB_URI: "mongodb://localhost" }, false).dataDir).toBeUndefined();
});

test("LAME_DUCK is known, for the stop waits as much longer", () => {
  expect([launcherConfig({}, false).lameDuckMs, launcherConfig({ LAME_DUCK: "5s" }, false).lameDuckMs]).toEqual([
    500, 5000,
  ]);
  expect(() => launcherConfig({ LAME_DUCK: "long" }, false)).toThrow(/^LAME_DUCK=long is wrong/);
});
