import { inspect } from "node:util";
import type { Environment } from "@petstore/runtime/environment";
import { expect, test } from "vitest";
import { serviceConfig } from "./config.ts";

const minimal = { INTERNAL_SECRET: "0123456789abcdef0123456789abcdef" };
const config = (environment: Environment) => serviceConfig({ ...minimal, ...environment }, "order", false);

test("everything but the secret has a default", () => {
  const { internalSecret, settings: _, ...rest } = config({});
  expect(internalSecret?.reveal()).toBe(minimal.INTERNAL_SECRET);
  expect(rest).toEqual({
    name: "order",
    instance: "order",
    host: "127.0.0.1",
    streams: { streams: 1000, streamsPerCaller: 20 },
    link: true,
    port: 8083,
    admin: { host: "127.0.0.1", port: 8183 },
    urls: {
      pet: ["http://127.0.0.1:8081"],
      category: ["http://127.0.0.1:8082"],
      order: ["http://127.0.0.1:8083"],
      inventory: ["http://127.0.0.1:8084"],
    },
    auth: undefined,
    loopbackOnly: true,
    allowedHosts: [],
    tls: undefined,
    internalTls: undefined,
    peerNames: ["spiffe://petstore/process"],
    logLevel: "info",
    logFormat: "json",
    trustedProxies: [],
    connections: {
      connections: 1000,
      connectionsPerAddress: 500,
      writeMs: 30_000,
    },
    dataDir: "data",
    mongodbUri: undefined,
    adminPorts: { PORT_BASE: 8080, REPLICAS: new Map(), ADMIN_HOST: "127.0.0.1", ADMIN_PORT: undefined },
    eventsRetentionMs: 86_400_000,
    crashAt: undefined,
  });
});

test("no secret shows up in what is printed", () => {
  const it = config({ MONGODB_URI: "mongodb://user:hunter2@db/x" });
  expect(it.mongodbUri?.reveal()).toBe("mongodb://user:hunter2@db/x");
  for (const text of [JSON.stringify(it), inspect(it, { depth: 9, showHidden: true }), `${it.mongodbUri}`]) {
    expect(text).not.toMatch(/hunter2|0123456789abcdef0123456789abcdef/);
  }
  expect(() => config({ MONGODB_URI: "mysql://user:hunter2@db/x" })).toThrow(/^MONGODB_URI is wrong/);
});
