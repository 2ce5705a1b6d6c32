/** Asks the pods of charts/petstore as their probes do, uses them, looks who can reach whom, and ends them. */
import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { promisify } from "node:util";
import { createKey, formatKeyFile, noKeys } from "@petstore/rpc/auth/key-file";
import { describe, expect, test } from "vitest";
import { PEER_NAME } from "../../processes/credentials.ts";
import { isServiceName, serviceNames } from "../../processes/names.ts";
import { createAuthority } from "../../scripts/certificates.ts";
import { startReplicaSet } from "../harness/mongod.ts";
import { mongodbMissing } from "../harness/mongodb.ts";
import { type Machine, networkMissing, startNetwork } from "../harness/network.ts";
import type { Pod } from "./chart.ts";
import { type Started, startPods } from "./chart-pods.ts";

const timeout = 240_000;
const execute = promisify(execFile);

const portOf = ({ container }: Pod, name: string) => container.ports.find((port) => port.name === name)?.containerPort;

/** What the last probe is answered, once the others let work come. */
async function probes({ pod, machine, child, log }: Started) {
  const { startupProbe, readinessProbe, livenessProbe } = pod.container;
  const ask = async ({ httpGet: { path, port } }: typeof startupProbe) =>
    (await fetch(`http://${machine.address}:${portOf(pod, port)}${path}`).catch(() => undefined))?.status;
  const startup = () => {
    if (child.exitCode === null) return ask(startupProbe);
    return log.then((said) => expect.unreachable(said.join("\n")));
  };
  await expect.poll(startup, { timeout: 120_000 }).toBe(200);
  await expect.poll(() => ask(readinessProbe)).toBe(200);
  return ask(livenessProbe);
}

const NAME = "petstore-gateway.petstore.svc";

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly body?: object;
  readonly host?: string;
  readonly scheme?: "http" | "https";
  readonly key?: string;
}

/** The status that a request to the gateway is answered with. */
async function ask({ machine }: Started, asked: Asked): Promise<number | undefined> {
  const { method = "GET", path = "/pets", body, host = NAME, scheme = "http", key } = asked;
  const headers = {
    host,
    ...(body && { "content-type": "application/json" }),
    ...(key !== undefined && { "x-api-key": key }),
  };
  const options = { method, headers, agent: false, rejectUnauthorized: false };
  const request = scheme === "https" ? overHttps : overHttp;
  const sent = request(`${scheme}://${machine.address}:8080${path}`, options).end(body && JSON.stringify(body));
  const [answer] = await once(sent, "response");
  answer.resume();
  return answer.statusCode;
}

/** As the kubelet does. */
async function end(child: ChildProcess): Promise<unknown> {
  child.kill("SIGTERM");
  const [code, signal] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  return signal ?? code;
}

/** Which of these places a machine can connect to. */
async function reached({ prefix }: Machine, places: readonly string[]): Promise<readonly string[]> {
  const script = `
    const { connect } = require("node:net");
    for (const place of process.argv.slice(1)) {
      const [host, port] = place.split(":");
      const socket = connect({ host, port, timeout: 2000 });
      socket.once("connect", () => { console.log(place); socket.destroy(); });
      socket.once("timeout", () => socket.destroy());
      socket.once("error", () => {});
    }`;
  const [program = "", ...args] = [...prefix, process.execPath, "-e", script, ...places];
  const { stdout } = await execute(program, args);
  return stdout.split("\n").filter(Boolean).sort();
}

describe.skipIf(networkMissing)("on machines of their own", () => {
  test("one pod on the embedded store", { timeout }, async () => {
    await using network = await startNetwork(1);
    const [single] = (await startPods("single", network, network.machines, () => ({}))) as [Started];
    expect(await probes(single)).toBe(200);
    expect([await ask(single, {}), await ask(single, { host: "evil.example" })]).toEqual([200, 421]);
    expect(await end(single.child)).toBe(0);
  });

  test("the same with TLS and API keys", { timeout }, async () => {
    await using network = await startNetwork(1);
    const files = { ...(await certificates(["shop.example"])), "keys/keys.json": formatKeyFile(noKeys) };
    const [single] = (await startPods("single-server", network, network.machines, () => files)) as [Started];
    expect(await probes(single)).toBe(200);
    expect(await ask(single, { host: "shop.example", scheme: "https" })).toBe(401);
    expect(await end(single.child)).toBe(0);
  });

  describe.skipIf(mongodbMissing)("on MongoDB", () => {
    test("five pods", { timeout }, async () => {
      await useFive("five", { "internal/secret": "0".repeat(64) }, {});
    });

    test("five pods that know each other by certificates, and callers by keys", { timeout }, async () => {
      const names = serviceNames.map((name) => `petstore-${name}`);
      const { content, key } = createKey(noKeys, { name: "test", scopes: ["*"], expires: undefined });
      const files = { ...(await certificates([...names, PEER_NAME])), "keys/keys.json": formatKeyFile(content) };
      await useFive("production", files, { scheme: "https", key });
    });
  });
});

/** A certificate with its authority, as they are in a Secret. */
async function certificates(names: readonly string[]) {
  const validity = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 3_600_000) };
  const authority = await createAuthority("test", validity);
  const { cert, key } = await authority.issue({ names: [...names], ...validity });
  return { "tls/tls.crt": cert, "tls/tls.key": key, "tls/ca.crt": authority.cert };
}

/** Sells a pet, and tries who can connect to whom. */
async function useFive(values: string, files: Readonly<Record<string, string>>, how: Pick<Asked, "scheme" | "key">) {
  await using network = await startNetwork(7);
  const [database, caller, ...machines] = network.machines as [Machine, Machine, ...Machine[]];
  await using mongodb = await startReplicaSet({ machines: [database] });
  const port = mongodb.members[0]?.port ?? 0;
  const secrets = (pod: string) => ({ ...files, ...(isServiceName(pod) && { "mongodb/uri": mongodb.uri }) });
  const cluster = { namespaces: { mongodb: database, ingress: caller }, ports: { 27017: port } };
  const all = await startPods(values, network, machines, secrets, cluster);
  expect(all).toHaveLength(5);
  expect(await Promise.all(all.map(probes))).toEqual(all.map(() => 200));

  const gateway = all.find(({ pod }) => pod.name === "gateway") as Started;
  const readiness = async () => (await fetch(`http://${gateway.machine.address}:8180/readyz`)).text();
  await expect.poll(readiness).toContain('"failing":[]');
  const uses = [
    { method: "POST", path: "/categories", body: { name: "dogs" } },
    { method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } },
    { method: "POST", path: "/store/orders", body: { petId: 1 } },
    { method: "PATCH", path: "/store/orders/1", body: { complete: true } },
    { method: "DELETE", path: "/pets/1" },
    { method: "DELETE", path: "/categories/1" },
    { host: "evil.example" },
  ];
  const answers: unknown[] = [];
  for (const use of uses) answers.push(await ask(gateway, { ...how, ...use }));
  expect(answers).toEqual([201, 201, 201, 200, 204, 204, 421]);

  // The calls of each, and nothing else.
  const placeOf = ({ machine }: Started, at: number) => `${machine.address}:${at}`;
  const places = all.flatMap((one) => [placeOf(one, 8080), placeOf(one, 8180)]);
  expect(await reached(caller, places)).toEqual([placeOf(gateway, 8080)]);
  const outside = [`${database.address}:${port}`, `${caller.address}:443`];
  for (const { pod, machine } of all) {
    const others = places.filter((place) => !place.startsWith(`${machine.address}:`));
    const addresses = pod.container.env.map(({ name }) => name);
    const called = all.filter((other) => addresses.includes(`${other.pod.name.toUpperCase()}_URL`));
    const store = isServiceName(pod.name) ? outside.slice(0, 1) : [];
    const expected = [...called.map((other) => placeOf(other, 8080)), ...store].sort();
    expect([pod.name, await reached(machine, [...others, ...outside])]).toEqual([pod.name, expected]);
  }
  expect(await Promise.all(all.map(({ child }) => end(child)))).toEqual(all.map(() => 0));
}
