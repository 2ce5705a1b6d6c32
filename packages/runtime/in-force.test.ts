import { expect, test } from "vitest";
import { duration, format, integer, mongodbUri, optional, secret, withDefault } from "./environment.ts";
import { CHOSEN, settingsInForce } from "./in-force.ts";

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
