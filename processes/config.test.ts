import { origin } from "@petstore/rpc/http/address";
import { ConfigError, type Environment, readEnvironment } from "@petstore/runtime/environment";
import { describe, expect, test } from "vitest";
import { processConfig, processSettings } from "./config.ts";
import { listenAdvice } from "./listen-advice.ts";
import { isServiceName, type ProcessName, portOf, processNames } from "./names.ts";

const minimal = { INTERNAL_SECRET: "0123456789abcdef0123456789abcdef" };
const config = (environment: Environment, terminal = false) =>
  processConfig(readEnvironment({ ...minimal, ...environment }, processSettings), "order", terminal);

test("the processes' ports stand side by side", () => {
  expect(processNames.map((name) => portOf(name, 9080))).toEqual([9080, 9081, 9082, 9083, 9084]);
});

test("PORT_BASE moves a service and its peers, PORT the service alone", () => {
  expect(config({ PORT_BASE: "9080" })).toMatchObject({ port: 9083, urls: { pet: ["http://127.0.0.1:9081"] } });
  expect(() => config({ PORT_BASE: "0" })).toThrow(
    "PORT_BASE=0 is wrong: it must be a whole number from 1024 to 65531.",
  );
  expect(config({ PORT: "0" })).toMatchObject({ port: 0, urls: { order: ["http://127.0.0.1:8083"] } });
});

test("peers are where they are said to be", () => {
  expect(config({ PET_URL: "http://pets.internal:80/" }).urls.pet).toEqual(["http://pets.internal"]);
});

test("a service has as many replicas as it has addresses", () => {
  const { urls } = config({ PET_URL: "http://a:8081, http://b:8081/" });
  expect(urls.pet).toEqual(["http://a:8081", "http://b:8081"]);
});

test.each(["http://a:8081,", "http://a:8081,b", "http://a:80,http://a", "http://a http://b"])(
  "PET_URL=%s is no list of addresses",
  (PET_URL) => {
    expect(() => config({ PET_URL })).toThrow(
      `PET_URL=${PET_URL} is wrong: it must be an http or https address such as http://127.0.0.1:8081, ` +
        "or several different ones separated by commas.",
    );
  },
);

describe("who may call", () => {
  const issuer = {
    JWT_ISSUER: "https://login.example",
    JWT_AUDIENCE: "petstore",
    JWT_JWKS: "https://login.example/jwks",
  };

  test("everybody, unless a mode says otherwise", () => {
    expect(config({}).auth).toBeUndefined();
    expect(config({ AUTH_MODE: "none", API_KEYS_FILE: "keys.json", ...issuer }).auth).toBeUndefined();
    expect(config({ AUTH_MODE: "keys", API_KEYS_FILE: "keys.json" }).auth).toEqual({
      apiKeysFile: "keys.json",
      tokens: undefined,
    });
    expect(config({ AUTH_MODE: "keys,jwt", API_KEYS_FILE: "keys.json", ...issuer }).auth).toEqual({
      apiKeysFile: "keys.json",
      tokens: {
        issuer: "https://login.example",
        audience: "petstore",
        jwks: "https://login.example/jwks",
        algorithms: ["RS256", "ES256", "EdDSA"],
      },
    });
  });

  test.each([
    [{ API_KEYS_FILE: "missing.json" }, ["API_KEYS_FILE"], "keys"],
    [{ API_KEYS_FILE: "keys.json", AUTH_MODE: " " }, ["API_KEYS_FILE"], "keys"],
    [issuer, ["JWT_ISSUER", "JWT_AUDIENCE", "JWT_JWKS"], "jwt"],
    [{ JWT_ALGORITHMS: "ES256" }, ["JWT_ALGORITHMS"], "jwt"],
  ])("%j without a mode would let everybody call, and does not start", (environment, names, mode) => {
    expect(() => config(environment)).toThrow(
      names
        .map(
          (name) =>
            `AUTH_MODE is not set: ${name} has no effect without it. ` +
            `Set AUTH_MODE=${mode}, or AUTH_MODE=none if callers need no credentials.`,
        )
        .join("\n"),
    );
  });

  test("an explicit mode leaves unused what it does not need", () => {
    const both = { API_KEYS_FILE: "keys.json", ...issuer };
    expect(config({ ...both, AUTH_MODE: "keys" }).auth).toEqual({ apiKeysFile: "keys.json", tokens: undefined });
    expect(config({ ...both, AUTH_MODE: "jwt" }).auth).toMatchObject({ apiKeysFile: undefined });
  });

  test("a mode that lacks what it needs does not start", () => {
    expect(() => config({ AUTH_MODE: "keys" })).toThrow("API_KEYS_FILE is not set: AUTH_MODE=keys needs it.");
    const { JWT_JWKS } = issuer;
    expect(() => config({ AUTH_MODE: "keys,jwt", JWT_JWKS })).toThrow(
      ["API_KEYS_FILE", "JWT_ISSUER", "JWT_AUDIENCE"]
        .map((name) => `${name} is not set: AUTH_MODE=keys,jwt needs it.`)
        .join("\n"),
    );
  });

  test.each(["none", "HS256", "RS256,none", "RS256,HS512"])("JWT_ALGORITHMS=%s is refused", (JWT_ALGORITHMS) => {
    expect(() => config({ AUTH_MODE: "jwt", ...issuer, JWT_ALGORITHMS })).toThrow("JWT_ALGORITHMS");
  });

  test.each([
    ["https://login.example/jwks", true],
    ["http://127.0.0.1:9000/jwks", true],
    ["http://[::1]:9000/jwks", true],
    ["http://[::2]/jwks", false],
    ["/etc/petstore/jwks.json", true],
    ["http://login.example/jwks", false],
    ["http://127.0.0.1.example/jwks", false],
    ["file:///etc/jwks.json", false],
  ])("JWT_JWKS=%s is a place for keys: %s", (JWT_JWKS, is) => {
    const read = () => config({ AUTH_MODE: "jwt", ...issuer, JWT_JWKS });
    if (is) expect(read().auth?.tokens?.jwks).toBe(JWT_JWKS);
    else expect(read).toThrow("JWT_JWKS");
  });

  test("with credentials it may listen beyond loopback", () => {
    const beyond = { HOST: "0.0.0.0" };
    expect(() => config(beyond)).toThrow("AUTH_MODE");
    expect(config({ ...beyond, AUTH_MODE: "keys", API_KEYS_FILE: "keys.json" }).host).toBe("0.0.0.0");
  });
});

describe("several of a kind", () => {
  const { INTERNAL_SECRET } = minimal;
  const of = (name: ProcessName, environment: Environment) =>
    processConfig(readEnvironment({ INTERNAL_SECRET, ...environment }, processSettings), name, false);

  test("services have ports of their own, which everybody knows, and gateways share theirs", () => {
    const REPLICAS = "gateway:2, pet:3";
    const pet = ["http://127.0.0.1:8081", "http://127.0.0.1:8086", "http://127.0.0.1:8091"];
    expect(of("order", { REPLICAS }).urls).toMatchObject({ pet, category: ["http://127.0.0.1:8082"] });
    expect(of("pet", { REPLICAS, REPLICA: "3" })).toMatchObject({ instance: "pet-3", port: 8091 });
    expect(of("gateway", { REPLICAS, REPLICA: "2" })).toMatchObject({ instance: "gateway-2", port: 8080 });
    expect(of("order", { REPLICAS })).toMatchObject({ instance: "order", port: 8083 });
  });

  test("addresses that are given count", () => {
    expect(of("order", { REPLICAS: "pet:2", PET_URL: "http://pets:80" }).urls.pet).toEqual(["http://pets"]);
  });

  test.each(["pets:2", "pet", "pet:", "pet:0", "pet:65", "pet:1.5", "pet:2:2", "pet:2,", "pet:2,pet:3", "2"])(
    "REPLICAS=%s is refused, with what is allowed",
    (REPLICAS) => {
      expect(() => of("pet", { REPLICAS })).toThrow(
        `REPLICAS=${REPLICAS} is wrong: it must be processes with how many there are to be of each, such as ` +
          "gateway:4,pet:2 (of gateway, pet, category, order, inventory, each named once; 1 to 64).",
      );
    },
  );

  test("a number beyond them is refused", () => {
    expect(() => of("pet", { REPLICAS: "pet:2", REPLICA: "3" })).toThrow(
      "REPLICA=3 is wrong: it can be 2 at most, for REPLICAS asks for 2 of pet.",
    );
    expect(() => of("pet", { REPLICA: "2" })).toThrow("it can be 1 at most, for REPLICAS asks for 1 of pet");
  });

  test("ports beyond the last one are refused", () => {
    const two = { REPLICAS: "inventory:2", ADMIN_PORT: "off" };
    expect(of("pet", { ...two, PORT_BASE: "65526" }).urls.inventory[1]).toBe("http://127.0.0.1:65535");
    expect(() => of("pet", { ...two, PORT_BASE: "65527" })).toThrow(
      "PORT_BASE=65527 is too high: the last port would be 65536. Choose a lower one.",
    );
    expect(of("inventory", { PORT_BASE: "65431" }).admin?.port).toBe(65535);
    expect(() => of("pet", { PORT_BASE: "65432" })).toThrow(
      "PORT_BASE=65432 is too high: the last port would be 65536.",
    );
  });
});

describe("the admin port", () => {
  const adminOf = (name: "gateway" | "pet", given: Record<string, string>) =>
    processConfig(readEnvironment({ INTERNAL_SECRET: "x".repeat(32), ...given }, processSettings), name, false).admin;

  test("is 100 above the port, unless it is said otherwise", () => {
    expect(adminOf("gateway", {})).toEqual({ host: "127.0.0.1", port: 8180 });
    expect(adminOf("pet", { PORT_BASE: "9080" })?.port).toBe(9181);
    expect(adminOf("pet", { PORT: "3000" })?.port).toBe(3100);
    expect(adminOf("pet", { PORT: "0" })?.port).toBe(0);
    expect(adminOf("pet", { ADMIN_PORT: "0" })?.port).toBe(0);
    expect(adminOf("pet", { ADMIN_PORT: "9999", ADMIN_HOST: "::1" })).toEqual({ host: "::1", port: 9999 });
    expect(adminOf("pet", { ADMIN_PORT: "off" })).toBeUndefined();
    expect(() => adminOf("pet", { ADMIN_PORT: "on" })).toThrow(
      "ADMIN_PORT=on is wrong: it must be a port from 0 to 65535 (0 takes one that is free), or off for none.",
    );
    expect(() => adminOf("pet", { PORT: "65500" })).toThrow("PORT=65500 leaves no room for the admin port above it");
  });

  test.each([1, 2, 20, 21, 64])(
    "with %i processes of each kind no two processes have the same one, or another's port",
    (count) => {
      const REPLICAS = processNames.map((name) => `${name}:${count}`).join(",");
      const all = processNames.flatMap((name) =>
        Array.from({ length: count }, (_, i) => {
          const given = { INTERNAL_SECRET: "x".repeat(32), REPLICAS, REPLICA: `${i + 1}` };
          return processConfig(readEnvironment(given, processSettings), name, false);
        }),
      );
      const admin = all.map((one) => one.admin?.port);
      expect(new Set(admin).size).toBe(5 * count);
      expect(admin.filter((port) => all.some((one) => one.port === port))).toEqual([]);
    },
  );
});

test("connections have bounds of their own", () => {
  const bounds = { MAX_CONNECTIONS: "20", MAX_CONNECTIONS_PER_ADDRESS: "10", WRITE_TIMEOUT: "5s" };
  expect(config(bounds).connections).toMatchObject({ connections: 20, connectionsPerAddress: 10, writeMs: 5000 });
  expect(() => config({ MAX_CONNECTIONS: "0" })).toThrow("it must be a whole number from 10 to 100000");
});

test("behind a proxy one address is many callers, and has no bound unless one is asked for", () => {
  const proxy = { TRUST_PROXY: "10.0.0.0/8" };
  expect(config(proxy)).toMatchObject({
    trustedProxies: [{ address: "10.0.0.0", bits: 8 }],
    connections: { connections: 1000, connectionsPerAddress: undefined },
  });
  const asked = config({ ...proxy, MAX_CONNECTIONS_PER_ADDRESS: "10" });
  expect(asked.connections.connectionsPerAddress).toBe(10);
});

test("streams have bounds, of a process and of each caller", () => {
  expect(config({}).streams).toEqual({ streams: 1000, streamsPerCaller: 20 });
  const bounds = { MAX_STREAMS: "50", MAX_STREAMS_PER_CALLER: "5" };
  expect(config(bounds).streams).toEqual({ streams: 50, streamsPerCaller: 5 });
  expect(() => config({ MAX_STREAMS_PER_CALLER: "0" })).toThrow("it must be a whole number from 1 to 100000");
});

describe("TLS", () => {
  const pair = { TLS_CERT: "cert.pem", TLS_KEY: "key.pem" };
  const files = { cert: "cert.pem", key: "key.pem" };
  const own = { INTERNAL_TLS_CERT: "own.pem", INTERNAL_TLS_KEY: "own-key.pem" };
  const ca = { INTERNAL_TLS_CA: "ca.pem" };
  const of = (name: ProcessName, environment: Environment) =>
    processConfig(readEnvironment(environment, processSettings), name, false);

  test("of the ports makes the addresses of the processes https", () => {
    const { tls, internalTls, urls } = config(pair);
    expect({ tls, internalTls }).toEqual({ tls: { ...files, ca: undefined }, internalTls: undefined });
    expect(urls.pet).toEqual(["https://127.0.0.1:8081"]);
    expect(origin("::", 443, "https")).toBe("https://127.0.0.1:443");
  });

  test("between the processes takes the place of the secret; services ask for certificates, the gateway does not", () => {
    const environment = { ...pair, ...ca };
    const expected = { internalSecret: undefined, internalTls: { ...files, ca: "ca.pem" } };
    expect(of("pet", environment)).toMatchObject({ ...expected, tls: { ...files, ca: "ca.pem" } });
    expect(of("gateway", environment)).toMatchObject({ ...expected, tls: { ...files, ca: undefined } });
  });

  test("between the processes may be by a certificate of its own", () => {
    const internalTls = { cert: "own.pem", key: "own-key.pem", ca: "ca.pem" };
    expect(of("gateway", { ...pair, ...ca, ...own })).toMatchObject({ tls: files, internalTls });
    const urls = { pet: ["https://127.0.0.1:8081"] }; // where a service with mutual TLS is
    expect(of("gateway", { ...ca, ...own })).toMatchObject({ tls: undefined, internalTls, urls });
    expect(of("gateway", { ...pair, ...ca, INTERNAL_TLS_NAMES: "spiffe://a/b, c.d" }).peerNames).toEqual([
      "spiffe://a/b",
      "c.d",
    ]);
  });

  test.each([
    [{}, /^INTERNAL_SECRET is not set: it must be at least 32/],
    [{ ...minimal, TLS_CERT: "cert.pem" }, /^TLS_KEY is not set: /],
    [{ ...minimal, TLS_KEY: "key.pem" }, /^TLS_CERT is not set: /],
    [{ ...minimal, ...own }, /^INTERNAL_TLS_CA is not set: /],
    [
      { ...ca, ...own, INTERNAL_TLS_KEY: "" },
      /^INTERNAL_TLS_KEY is not set: INTERNAL_TLS_CERT has no effect without it\./,
    ],
    [
      { ...ca, ...own, INTERNAL_TLS_CERT: "" },
      /^INTERNAL_TLS_CERT is not set: INTERNAL_TLS_KEY has no effect without it\./,
    ],
    [{ ...ca, ...own }, /^TLS_CERT is not set: INTERNAL_TLS_CA needs a port with TLS\.$/],
    [
      { ...minimal, INTERNAL_TLS_NAMES: "a" },
      /^INTERNAL_TLS_CA is not set: INTERNAL_TLS_NAMES has no effect without it\./,
    ],
    [{ ...ca }, /^INTERNAL_TLS_CERT is not set: .*\nTLS_CERT is not set: INTERNAL_TLS_CA needs a port with TLS\.$/],
    [{ ...pair, ...ca, PET_URL: "https://a,http://b" }, /^PET_URL=http:\/\/b is wrong: it must be an https address/],
  ])("%j lacks something, and says what", (environment, problem) => {
    expect(() => of("pet", environment)).toThrow(problem);
  });
});

test("calls go over links unless that is switched off", () => {
  expect([config({}).link, config({ LINK: "off" }).link]).toEqual([true, false]);
});

test("the log is readable on a terminal, JSON otherwise, unless told", () => {
  expect(config({}, true).logFormat).toBe("pretty");
  expect(config({ LOG_FORMAT: "json" }, true).logFormat).toBe("json");
});

test("all wrong values are named at once, each with what is allowed", () => {
  const wrong = {
    PORT: "http",
    PORT_BASE: "99999",
    LOG_LEVEL: "loud",
    PET_URL: "pets",
    INTERNAL_SECRET: "x".repeat(31),
  };
  const act = () => config(wrong);
  expect(act).toThrow(ConfigError);
  expect(act).toThrow(
    [
      "PORT=http is wrong: it must be a whole number from 0 to 65535.",
      "PORT_BASE=99999 is wrong: it must be a whole number from 1024 to 65531.",
      "PET_URL=pets is wrong: it must be an http or https address such as http://127.0.0.1:8081, or several different ones separated by commas.",
      "INTERNAL_SECRET is wrong: it must be at least 32 visible ASCII characters, such as `openssl rand -hex 32` prints.",
      "LOG_LEVEL=loud is wrong: it must be trace or debug or info or warn or error or fatal or silent.",
    ].join("\n"),
  );
});

describe("listening beyond loopback", () => {
  test.each(["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org", "localhost.example.org"])(
    "on %s is refused, with a way out",
    (HOST) => {
      expect(() => config({ HOST })).toThrow(/without credentials.*ALLOW_UNAUTHENTICATED=beyond-loopback/);
    },
  );
  test("is possible in so many words only", () => {
    expect(config({ HOST: "0.0.0.0", ALLOW_UNAUTHENTICATED: "beyond-loopback" }).host).toBe("0.0.0.0");
    expect(() => config({ HOST: "0.0.0.0", ALLOW_UNAUTHENTICATED: "true" })).toThrow(
      "ALLOW_UNAUTHENTICATED=true is wrong",
    );
  });
  test.each(["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST", "shop.localhost"])(
    "%s is loopback",
    (HOST) => {
      expect(config({ HOST }).host).toBe(HOST);
    },
  );
});

test("a server on all addresses is reached by loopback", () => {
  for (const all of ["0.0.0.0", "::", "0::0", "0:0:0:0:0:0:0:0"]) expect(origin(all, 80)).toBe("http://127.0.0.1:80");
  expect(origin("::1", 80)).toBe("http://[::1]:80");
  expect(origin("a.example", 80)).toBe("http://a.example:80");
});

test("an address with a zone, which no URL can name, is refused where the processes would call each other by it", () => {
  const environment = { ...minimal, HOST: "fe80::1%eth0", ALLOW_UNAUTHENTICATED: "beyond-loopback" };
  expect(() => config(environment)).toThrow(/^HOST=fe80::1%eth0 has a zone.*HOST=::/);
  const elsewhere = Object.fromEntries(
    ["PET", "CATEGORY", "ORDER", "INVENTORY"].map((one) => [`${one}_URL`, "http://a"]),
  );
  expect(config({ ...environment, ...elsewhere }).host).toBe("fe80::1%eth0");
});

test("the gateway is no service", () => {
  expect([...processNames, "cat", undefined].filter(isServiceName)).toEqual(["pet", "category", "order", "inventory"]);
});

test.each([
  ["EADDRINUSE", /port 80 is taken.*PORT_BASE=9080/],
  ["ENOTSUP", /does not share a port.*REPLICAS/],
  ["EACCES", /port 80 needs privileges.*PORT or PORT_BASE/],
  ["EADDRNOTAVAIL", /HOST=10\.0\.0\.1 is no address of this machine.*HOST=127\.0\.0\.1/],
  ["ENOTFOUND", /HOST=10\.0\.0\.1 is no name/],
])("%s at the start says what to do in one line", (code, words) => {
  const advice = listenAdvice(code, "10.0.0.1", 80);
  expect(advice).toMatch(words);
  expect(advice).not.toContain("\n");
});

test("nothing is advised on an error of listening that nobody foresaw", () => {
  expect(listenAdvice("EMFILE", "10.0.0.1", 80)).toBeUndefined();
});
