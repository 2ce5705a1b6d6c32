/**
 * Starts what is in the pods of charts/petstore, with their arguments and environment, and asks as their probes do. Only what
 * several on one machine can't share is another: addresses and ports, the folders of secrets and data.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { formatKeyFile, noKeys } from "@petstore/rpc/auth/key-file";
import { describe, expect, onTestFinished, test } from "vitest";
import { adminPortOf, type ProcessName, portOf, serviceNames } from "../../processes/names.ts";
import { createAuthority } from "../../scripts/certificates.ts";
import { freePorts } from "../harness/instances.ts";
import { startReplicaSet } from "../harness/mongod.ts";
import { mongodbMissing } from "../harness/mongodb.ts";
import { environmentOf, image, type Pod, podsOf, rendered } from "./chart.ts";

const timeout = 240_000;

/** Starts the pods of one values file. `secrets`: what is in each file below /secrets, by pod if they differ. */
async function start(values: string, secrets: (pod: string) => Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "chart-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const base = await freePorts();
  // All in one have the gateway's ports.
  const kindOf = ({ name }: Pod) => (name === "single" ? "gateway" : name) as ProcessName;
  return podsOf(rendered(values)).map((pod) => {
    const own = join(folder, pod.name);
    for (const [path, content] of Object.entries(secrets(pod.name))) {
      mkdirSync(join(own, dirname(path)), { recursive: true });
      writeFileSync(join(own, path), content);
    }
    const { PORT: _, ...environment } = environmentOf(pod.container, own);
    for (const service of serviceNames) {
      const name = `${service.toUpperCase()}_URL`;
      const url = environment[name]?.replace(`petstore-${service}:8080`, `127.0.0.1:${portOf(service, base)}`);
      if (url) environment[name] = url;
    }
    const port = portOf(kindOf(pod), base);
    const here = { HOST: "127.0.0.1", ADMIN_HOST: "127.0.0.1", DATA_DIR: join(own, "data") };
    const child = spawn(process.execPath, [...image.entrypoint.slice(1), ...pod.container.args], {
      env: { ...environment, ...here, [pod.name === "single" ? "PORT_BASE" : "PORT"]: `${port}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const log = Promise.all([text(child.stdout), text(child.stderr)]);
    const admin = `http://127.0.0.1:${adminPortOf(kindOf(pod), base, 1, new Map())}`;
    return { pod, child, port, admin, log };
  });
}

type Started = Awaited<ReturnType<typeof start>>[number];

/** What each probe is answered, once the first one lets the others begin. */
async function probes({ pod: { container }, child, admin, log }: Started) {
  const ask = async ({ httpGet }: typeof container.startupProbe) =>
    (await fetch(admin + httpGet.path).catch(() => undefined))?.status;
  const startup = () => {
    if (child.exitCode !== null) return log.then((said) => expect.unreachable(said.join("\n")));
    return ask(container.startupProbe);
  };
  await expect.poll(startup, { timeout: 120_000 }).toBe(200);
  await expect.poll(() => ask(container.readinessProbe)).toBe(200);
  return ask(container.livenessProbe);
}

/** How the gateway answers a request by that name. */
async function statusOf(url: string, host: string, headers: object = {}): Promise<number | undefined> {
  const request = url.startsWith("https:") ? overHttps : overHttp;
  const [answer] = await once(
    request(url, { headers: { ...headers, host }, agent: false, rejectUnauthorized: false }).end(),
    "response",
  );
  answer.resume();
  return answer.statusCode;
}

/** As the kubelet does. */
async function end(child: ChildProcess): Promise<unknown> {
  child.kill("SIGTERM");
  const [code, signal] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  return signal ?? code;
}

const name = "petstore-gateway.petstore.svc";

test("one pod on the embedded store", { timeout }, async () => {
  const [single] = (await start("single", () => ({}))) as [Started];
  expect(await probes(single)).toBe(200);
  const url = `http://127.0.0.1:${single.port}/pets`;
  expect([await statusOf(url, name), await statusOf(url, "evil.example")]).toEqual([200, 421]);
  expect(await end(single.child)).toBe(0);
});

test("the same with TLS and API keys", { timeout }, async () => {
  const validity = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 3_600_000) };
  const { cert, key } = await (await createAuthority("test", validity)).issue({ names: ["shop.example"], ...validity });
  const files = { "tls/tls.crt": cert, "tls/tls.key": key, "keys/keys.json": formatKeyFile(noKeys) };
  const [single] = (await start("single-server", () => files)) as [Started];
  expect(await probes(single)).toBe(200);
  expect(await statusOf(`https://127.0.0.1:${single.port}/pets`, "shop.example")).toBe(401);
  expect(await end(single.child)).toBe(0);
});

describe.skipIf(mongodbMissing)("on MongoDB", () => {
  test("five pods", { timeout }, async () => {
    const mongodb = await startReplicaSet();
    onTestFinished(() => mongodb.stop());
    const all = await start("five", (pod) => ({
      "internal/secret": "0".repeat(64),
      ...(pod === "gateway" ? {} : { "mongodb/uri": mongodb.uri }),
    }));
    expect(all).toHaveLength(5);
    expect(await Promise.all(all.map(probes))).toEqual(all.map(() => 200));
    const gateway = all.find(({ pod }) => pod.name === "gateway") as Started;
    const url = `http://127.0.0.1:${gateway.port}`;
    const failing = async () => (await (await fetch(`${url}/readyz`)).json()).failing;
    await expect.poll(failing).toEqual([]);
    // Each caller finds those that it calls: a pet is made by all but order, which asks inventory.
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      return (await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })).status;
    };
    expect(await post("/categories", { name: "dogs" })).toBe(201);
    expect(await post("/pets", { name: "Rex", categoryId: 1 })).toBe(201);
    expect(await post("/store/orders", { petId: 1 })).toBe(201);
    expect([await statusOf(`${url}/pets`, name), await statusOf(`${url}/pets`, "evil.example")]).toEqual([200, 421]);
    expect(await Promise.all(all.map(({ child }) => end(child)))).toEqual(all.map(() => 0));
  });
});
