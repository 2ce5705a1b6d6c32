/** Holds docker-compose.yml and the Dockerfile to what they promise, and to the code that they start. */
import { existsSync, globSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, matchesGlob, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Environment } from "@petstore/runtime/environment";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { isServiceName, type ProcessConfig, processNames, type ServiceName } from "../../config.ts";
import { gatewayConfig } from "../../gateway/config.ts";
import { serviceConfig } from "../../services/config.ts";

interface Container {
  readonly image: string;
  readonly build?: string;
  readonly command: readonly string[];
  readonly user: string;
  readonly read_only: boolean;
  readonly tmpfs: readonly string[];
  readonly cap_drop: readonly string[];
  readonly security_opt: readonly string[];
  readonly mem_limit: string;
  readonly restart: string;
  readonly stop_grace_period: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck: {
    readonly test?: readonly string[];
    readonly disable?: boolean;
    readonly start_period: string;
  };
  readonly networks: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>> | readonly string[];
}

/** As `docker compose` reads it where nothing is set: ${NAME:-default} is its default. */
const compose = parse(
  readFileSync("docker-compose.yml", "utf8").replace(/\$\{\w+:-([^}]*)\}/g, (_, otherwise) => otherwise),
  { merge: true },
);
const containers = Object.entries<Container>(compose.services);
const dockerfile = readFileSync("Dockerfile", "utf8");
const instructions = (name: string) =>
  [...dockerfile.replace(/\\\n\s*/g, " ").matchAll(new RegExp(`^${name} (.*)$`, "gm"))].map(([, rest = ""]) => rest);

const inJson = (name: string): string[] => JSON.parse(instructions(name)[0] ?? "[]");

const running = containers.filter(([, { restart }]) => restart === "unless-stopped");
const services = processNames.filter(isServiceName);
const ofService = (name: ServiceName): Container => compose.services[name];
const port = Number(/ PORT=(\d+)/.exec(instructions("ENV").join())?.[1]);

describe("every container", () => {
  test.each(containers)("%s can do no more than it needs to", (_, container) => {
    expect(container).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
    expect(container.tmpfs).toContain("/tmp");
    expect(container.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(container.mem_limit).toMatch(/^\d+[mg]$/);
  });

  test.each(running)("%s is asked for its health", (_, { image, healthcheck }) => {
    const check = healthcheck.test ?? (image === "petstore" ? inJson("HEALTHCHECK.*? CMD") : []);
    expect(check.length).toBeGreaterThan(1);
    expect(healthcheck.disable).toBeUndefined();
    // Compose refuses a start_interval without it.
    expect(healthcheck.start_period).toBeDefined();
  });

  test.each(running)("%s has time to end", (_, { image, stop_grace_period }) => {
    expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThan(image === "petstore" ? 10 : 20);
  });

  test("images have exact versions, and only one container builds the petstore's", () => {
    const foreign = containers.filter(([, { image }]) => image !== "petstore");
    for (const [, { image }] of foreign) expect(image).toMatch(/^[a-z]+:\d+\.\d+\.\d+(-[a-z]+)?$/);
    // Two that build the same name at once can get in each other's way.
    expect(containers.filter(([, { build }]) => build).map(([name]) => name)).toEqual(["replica-set"]);
  });

  test("only the gateway can be reached, and only from this machine", () => {
    expect(compose.networks.inside).toEqual({ internal: true });
    for (const [name, { ports, networks }] of containers.filter(([name]) => name !== "gateway"))
      expect([name, ports, networks]).toEqual([name, undefined, ["inside"]]);
    expect(compose.services.gateway.ports).toEqual([`127.0.0.1:8080:${port}`]);
  });

  test("what is mounted and named is declared", () => {
    for (const [, { networks, volumes = [], depends_on = [] }] of containers) {
      for (const name of networks) expect(Object.keys(compose.networks)).toContain(name);
      for (const volume of volumes) expect(Object.keys(compose.volumes)).toContain(volume.split(":")[0]);
      const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
      for (const name of needed) expect(Object.keys(compose.services)).toContain(name);
    }
  });
});

describe("the processes", () => {
  /** What a process reads, besides what it makes of it. */
  function read(container: Container, config: (environment: Environment) => ProcessConfig) {
    const known = new Set<string>();
    const environment = { PORT: `${port}`, DATA_DIR: "/data", ...container.environment };
    const watched = new Proxy(environment, {
      get: (target: Record<string, string>, name) => {
        known.add(String(name));
        return target[String(name)];
      },
    });
    return { config: config(watched), unknown: Object.keys(environment).filter((name) => !known.has(name)) };
  }
  test.each(processNames)("%s understands its whole environment", (name) => {
    const configOf = (env: Environment) =>
      isServiceName(name) ? serviceConfig(env, name, false) : gatewayConfig(env, false);
    const { config, unknown } = read(compose.services[name], configOf);
    expect(unknown).toEqual(name === "gateway" ? ["DATA_DIR"] : []); // the image sets it for all
    expect(config).toMatchObject({ name, host: "0.0.0.0", port });
    for (const service of services) expect(`${config.urls[service]}`).toBe(`http://${service}:${port}`);
  });

  test("each runs what it is called", () => {
    for (const name of services) expect(ofService(name).command).toEqual(["services/main.ts", name]);
    expect(compose.services.gateway.command).toEqual(["gateway/main.ts"]);
  });

  test("they store in the replica set that is made of the containers", () => {
    const members = containers.filter(([, { image }]) => image.startsWith("mongo:"));
    const set = members.map(([, { command }]) => command[command.indexOf("--replSet") + 1]);
    const uri = `mongodb://${members.map(([name]) => name).join(",")}/?replicaSet=${set[0]}`;
    expect(new Set(set).size).toBe(1);
    for (const name of ["replica-set", ...services]) expect(compose.services[name].environment.MONGODB_URI).toBe(uri);
    expect(compose.services["replica-set"].depends_on).toEqual(members.map(([name]) => name));
    for (const [, { volumes }] of members) expect(volumes?.[0]).toMatch(/:\/data\/db$/);
  });

  test("they start in order: the replica set, the services, the gateway", () => {
    for (const name of services)
      expect(ofService(name).depends_on).toEqual({ "replica-set": { condition: "service_completed_successfully" } });
    expect(compose.services.gateway.depends_on).toEqual(
      Object.fromEntries(services.map((name) => [name, { condition: "service_healthy" }])),
    );
  });
});

describe("the image", () => {
  const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));

  const manifest = JSON.parse(readFileSync("package.json", "utf8"));

  test("has the Node of package.json", () => {
    const [, version] = /^NODE_IMAGE=node:([\d.]+)-\w+-slim$/.exec(instructions("ARG")[0] ?? "") ?? [];
    expect(new Set(Object.values(manifest.optionalDependencies))).toEqual(new Set([version]));
    expect(new Set(instructions("FROM").map((image) => image.split(" ")[0]))).toEqual(new Set([`\${NODE_IMAGE}`]));
  });

  test("runs as the user of docker-compose.yml, without a shell", () => {
    expect(/^USER (.*)$/m.exec(last)?.[1]).toBe(compose.services.gateway.user);
    expect(/^ENTRYPOINT (.*)$/m.exec(last)?.[1]).toBe('["node"]');
  });

  test("has all that the containers run, and what that imports", () => {
    const copied = [...last.matchAll(/^COPY (?:--from=generated \/petstore\/)?(?!--)(.+) \S+$/gm)]
      .flatMap(([, paths = ""]) => paths.split(" "))
      .filter((path) => existsSync(path));
    const generated = [...last.matchAll(/^COPY --from=generated \/petstore\/(\S+) /gm)].map(([, path = ""]) => path);
    const allowed = readFileSync(".dockerignore", "utf8").split("\n");
    const refused = allowed.filter((pattern) => pattern.startsWith("**/"));
    const scripts = containers
      .filter(([, { image }]) => image === "petstore")
      .map(([, { command }]) => command[0] ?? "");
    const { files, packages } = reachable([...scripts, ...inJson("CMD"), inJson("HEALTHCHECK.*? CMD")[1] ?? ""]);
    expect(files.size).toBeGreaterThan(100);
    for (const file of files) {
      const from = copied.find((path) => file === path || file.startsWith(`${path}/`));
      expect(from, `${file} is copied`).toBeDefined();
      if (generated.some((path) => file.startsWith(`${path}/`))) continue; // it is made where the image is
      expect(allowed).toContain(`!${from}`);
      expect(refused.filter((pattern) => [pattern, `${pattern}/**`].some((glob) => matchesGlob(file, glob)))).toEqual(
        [],
      );
    }
    const installed = ["package.json", ...globSync("packages/*/package.json")].flatMap((path) =>
      Object.keys(JSON.parse(readFileSync(path, "utf8")).dependencies ?? {}),
    );
    const left = instructions("RUN").find((command) => command.includes("npm uninstall")) ?? "";
    for (const name of packages) {
      expect(installed, name).toContain(name);
      expect(left.split(" ")).not.toContain(name);
    }
  });
});

/** The packages of this repository, and what its own package.json names. */
const ours = /^(#|@petstore\/|connect-transcoder)/;

/** The files that these import, and those that they import, and the packages. */
function reachable(entries: readonly string[]) {
  const files = new Set(entries);
  const packages = new Set<string>();
  for (const file of files)
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(/(?:\bfrom |^import |\bimport\()"([^"]+)"/gm)) {
      if (name.startsWith(".")) files.add(join(dirname(file), name));
      else if (ours.test(name)) files.add(relative(".", realpathSync(fileURLToPath(import.meta.resolve(name)))));
      else if (!name.startsWith("node:")) packages.add(/^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? "");
    }
  return { files, packages };
}
