import { describe, expect, test } from "vitest";
import { duration, format, integer, mongodbUri, oneOf, optional, secret, text, withDefault } from "./environment.ts";
import { CHOSEN, misspelledIn, settingsInForce } from "./settings.ts";

describe("settings in force", () => {
  const settings = {
    PORT: withDefault(integer(0, 9999), 8080),
    PAUSE: withDefault(duration("1ms", "1h"), 500),
    SHARES: withDefault(
      format<ReadonlyMap<string, number>>("shares", (text) => new Map([[text, 1]])),
      new Map(),
    ),
    KEY: optional(secret(8)),
    MONGODB_URI: optional(mongodbUri),
  };

  test("what is not set has its default", () => {
    expect(settingsInForce({ PORT: " " }, settings)).toEqual({
      PORT: { value: 8080, from: "default" },
      PAUSE: { value: 500, from: "default" },
      SHARES: { value: {}, from: "default" },
      KEY: { value: null, from: "default" },
      MONGODB_URI: { value: null, from: "default" },
    });
  });

  test("what is set says where, and a secret nothing else", () => {
    const environment = {
      PORT: "9080",
      PAUSE: "5s",
      SHARES: "pet",
      KEY: "hunter2hunter2",
      MONGODB_URI_FILE: "/run/hunter2",
      [CHOSEN]: "KEY,PAUSE",
      PATH: "/bin",
    };
    const found = settingsInForce(environment, settings);
    expect(found).toEqual({
      PORT: { value: 9080, from: "environment" },
      PAUSE: { value: 5000, from: "launcher" },
      SHARES: { value: { pet: 1 }, from: "environment" },
      KEY: { value: "[secret]", from: "launcher" },
      MONGODB_URI: { value: "[secret]", from: "file" },
    });
    expect(JSON.stringify(found)).not.toContain("hunter2");
  });
});

describe("misspelled settings", () => {
  const settings = {
    HOST: optional(text),
    LINK: optional(oneOf("on", "off")),
    AUTH_MODE: optional(text),
    MAX_CONNECTIONS_PER_ADDRESS: optional(text),
    INTERNAL_SECRET: optional(secret(8)),
  };
  const meant = (name: string) =>
    misspelledIn({ [name]: "hunter2" }, settings).map(({ text }) => /perhaps (\w+) is meant/.exec(text)?.[1])[0];

  test.each([
    ["AUTHMODE", "AUTH_MODE"],
    ["auth_mode", "AUTH_MODE"],
    ["authMode", "AUTH_MODE"],
    ["AUTH__MODE", "AUTH_MODE"],
    ["AUHT_MODE", "AUTH_MODE"],
    ["AUTH_MODES", "AUTH_MODE"],
    ["AUT_MOD", "AUTH_MODE"],
    ["\ufeffAUTH_MODE", "AUTH_MODE"],
    ["Host", "HOST"],
    ["HOTS", "HOST"],
    ["maxConnectionsPerAddress", "MAX_CONNECTIONS_PER_ADDRESS"],
    ["MAX_CONNECTION_PER_ADRESS", "MAX_CONNECTIONS_PER_ADDRESS"],
    ["INTERNAL_SECRET_FIL", "INTERNAL_SECRET_FILE"],
  ])("%s", (name, setting) => expect(meant(name)).toBe(setting));

  test.each([
    "HOME",
    "PGHOST",
    "LINES",
    "LANG",
    "AUTH_TOKEN",
    "AUTH",
    "MODE",
    "SECRET",
    "AUTH_MODE",
    "INTERNAL_SECRET_FILE",
    "",
  ])("%s is something else", (name) => expect(meant(name)).toBeUndefined());

  test("says the name alone, and only where something has no effect that may be missed", () => {
    expect(misspelledIn({ INTERNALSECRET: "hunter2" }, settings)).toEqual([
      { name: "INTERNALSECRET", text: "INTERNALSECRET has no effect: perhaps INTERNAL_SECRET is meant." },
    ]);
    expect(misspelledIn({ AUTHMODE: " " }, settings)).toEqual([]);
    expect(misspelledIn({ AUTHMODE: "keys", AUTH_MODE: "keys" }, settings)).toEqual([]);
  });

  test("is bounded, whatever the environment holds", () => {
    const many = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, i) => [`AUTH_MODE${i % 90}${"_".repeat(i / 90)}`, "1"]),
    );
    expect(misspelledIn({ ...many, [`A${"_".repeat(1e6)}UTH_MODE`]: "1" }, settings)).toHaveLength(10);
  });
});
