/** Holds docker-compose.yml and the Dockerfile to what they promise, and to the code that they start. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, matchesGlob, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Environment } from "@petstore/runtime/environment";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { gatewayConfig } from "../../gateway/config.ts";
import type { ProcessConfig } from "../../processes/config.ts";
import { isServiceName, processNames, type ServiceName, serviceNames } from "../../processes/names.ts";
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
  readonly cpu_shares?: number;
  readonly restart: string;
  readonly stop_grace_period: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck: {
    readonly test?: readonly string[];
    readonly disable?: boolean;
    readonly start_period: string;
  };
  readonly networks?: readonly string[];
  readonly network_mode?: string;
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
const services = serviceNames;
const ofService = (name: ServiceName): Container => compose.services[name];
const port = Number(/ PORT=(\d+)/.exec(instructions("ENV").join())?.[1]);

describe("every container", () => {
  test.each(containers)("%s can do no more than it needs to", (_, container) => {
    expect(container).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
    expect(container.tmpfs).toContain("/tmp");
    expect(container.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(container.mem_limit).toMatch(/^\d+[mg]$/);
  });

  test("the gateway goes before all others where there is not processor time for all", () => {
    expect(containers.filter(([, { cpu_shares = 1024 }]) => cpu_shares > 1024).map(([name]) => name)).toEqual([
      "gateway",
    ]);
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
    for (const [, { image }] of foreign) expect(image).toMatch(/^[a-z/]+:v?\d+\.\d+\.\d+(-[a-z]+)?$/);
    // Two that build the same name at once can get in each other's way.
    expect(containers.filter(([, { build }]) => build).map(([name]) => name)).toEqual(["secrets"]);
  });

  test("only the gateway and Prometheus can be reached, and only from this machine", () => {
    expect(compose.networks.inside).toEqual({ internal: true });
    const outside = ["gateway", "prometheus"];
    for (const [name, { ports, networks, network_mode }] of containers.filter(([name]) => !outside.includes(name))) {
      const inside = networks?.[0] ?? network_mode;
      expect([name, ports, networks?.length ?? 1]).toEqual([name, undefined, 1]);
      expect(["inside", "none", "service:mongo1"]).toContain(inside);
    }
    expect(compose.services.gateway.ports).toEqual([`127.0.0.1:8080:${port}`]);
    expect(compose.services.prometheus.ports).toEqual(["127.0.0.1:9090:9090"]);
  });

  test("what is mounted and named is declared", () => {
    for (const [, { networks, volumes = [], depends_on = [] }] of containers) {
      for (const name of networks ?? []) expect(Object.keys(compose.networks)).toContain(name);
      for (const [from = ""] of volumes.map((volume) => volume.split(":"))) {
        if (from.startsWith("./")) expect(existsSync(from)).toBe(true);
        else expect(Object.keys(compose.volumes)).toContain(from);
      }
      const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
      for (const name of needed) expect(Object.keys(compose.services)).toContain(name);
    }
  });
});

describe("the processes", () => {
  const secrets = mkdtempSync(join(tmpdir(), "secrets-"));
  afterAll(() => rmSync(secrets, { recursive: true }));
  beforeAll(() => {
    const { command } = compose.services.secrets;
    execFileSync(process.execPath, [command[0], secrets, command[2]]);
  });

  /** What a process reads, besides what it makes of it. */
  function read(container: Container, config: (environment: Environment) => ProcessConfig) {
    const known = new Set<string>();
    const environment = { PORT: `${port}`, DATA_DIR: "/data", ...container.environment };
    // Where the secrets are in the container, here they are in a directory.
    for (const [name, path] of Object.entries(environment).filter(([name]) => name.endsWith("_FILE")))
      environment[name as "PORT"] = join(secrets, relative("/secrets", path));
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
    expect(config.internalSecret?.reveal()).toMatch(/^[0-9a-f]{64}$/);
    expect(config).toMatchObject({ name, host: "0.0.0.0", port });
    for (const service of services) expect(`${config.urls[service]}`).toBe(`http://${service}:${port}`);
    // What is published answers to no name that a web page could have.
    expect(config.allowedHosts).toEqual(compose.services[name].ports ? ["localhost"] : undefined);
  });

  test("each runs what it is called", () => {
    for (const name of services) expect(ofService(name).command).toEqual(["services/main.ts", name]);
    expect(compose.services.gateway.command).toEqual(["gateway/main.ts"]);
  });

  test("each can read the secrets that it needs and no others", () => {
    const folders = (name: string) =>
      (compose.services[name] as Container).volumes?.map((volume) => volume.split(":").slice(1).join(":"));
    expect(folders("gateway")).toEqual(["/secrets/internal:ro"]);
    for (const name of services) expect(folders(name)).toEqual(["/secrets/internal:ro", `/secrets/${name}:ro`]);
    expect(folders("replica-set")).toEqual(["/secrets/admin:ro", ...services.map((name) => `/secrets/${name}:ro`)]);
    const made = ["internal", "admin", ...services].map((name) => `/secrets/${name}`);
    expect(folders("secrets")).toEqual(made);
    // Or a volume would belong to root, and nothing could be made in it.
    const install = instructions("RUN")
      .find((command) => command.startsWith("install "))
      ?.replaceAll(/ +/g, " ");
    expect(install).toBe(`install --directory --owner=node --group=node /data ${made.join(" ")}`);
    for (const [name, { environment }] of containers)
      expect([name, Object.keys(environment ?? {}).filter((each) => /SECRET$|_URI$|PASSWORD/.test(each))]).toEqual([
        name,
        [],
      ]);
  });

  test("they store in the replica set that is made of the containers, which asks who calls", () => {
    const members = containers.filter(([name]) => /^mongo\d$/.test(name));
    for (const [, { command, volumes }] of members) {
      expect(command.slice(0, 2)).toEqual(["--replSet", "petstore"]);
      expect(command[command.indexOf("--keyFile") + 1]).toBe("/data/configdb/key");
      expect(volumes?.[0]).toMatch(/:\/data\/db$/);
      expect(volumes?.[1]).toBe("mongo-key:/data/configdb:ro");
    }
    expect(compose.services["mongo-key"].volumes).toEqual(["mongo-key:/data/configdb"]);
    expect(compose.services.secrets.command.slice(1)).toEqual([
      "/secrets",
      `mongodb://${members.map(([name]) => name).join(",")}/?replicaSet=petstore`,
    ]);
    const setUp: Container = compose.services["replica-set"];
    expect(setUp.command.slice(1)).toEqual(services.map((name) => `/secrets/${name}/mongodb-uri`));
    // The first user can only be made from the machine of a server, which has to be the first one.
    expect(setUp.network_mode).toBe(`service:${members[0]?.[0]}`);
  });

  test("they start in order: the secrets, the replica set, the services, the gateway", () => {
    const completed = { condition: "service_completed_successfully" };
    for (const name of ["mongo1", "mongo2", "mongo3"])
      expect(compose.services[name].depends_on).toEqual({ "mongo-key": completed });
    expect(compose.services["replica-set"].depends_on).toMatchObject({
      secrets: completed,
      mongo1: { condition: "service_started" },
    });
    for (const name of services) expect(ofService(name).depends_on).toEqual({ "replica-set": completed });
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
    expect(/^ENTRYPOINT (.*)$/m.exec(last)?.[1]).toBe('["node", "--disable-sigusr1"]');
  });

  test("has all that the containers and whoever is on call run, and what that imports", () => {
    const copied = [...last.matchAll(/^COPY (?:--from=generated \/petstore\/)?(?!--)(.+) \S+$/gm)]
      .flatMap(([, paths = ""]) => paths.split(" "))
      .filter((path) => existsSync(path));
    const generated = [...last.matchAll(/^COPY --from=generated \/petstore\/(\S+) /gm)].map(([, path = ""]) => path);
    const allowed = readFileSync(".dockerignore", "utf8").split("\n");
    const refused = allowed.filter((pattern) => pattern.startsWith("**/"));
    const scripts = containers
      .filter(([, { image }]) => image === "petstore")
      .map(([, { command }]) => command[0] ?? "");
    const { files, packages } = reachable([
      ...[...scripts, ...inJson("CMD"), inJson("HEALTHCHECK.*? CMD")[1] ?? ""],
      ...["backup/main.ts", "doctor/main.ts"],
    ]);
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
