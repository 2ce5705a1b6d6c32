/** Pods come and go behind the names of services, as those of headless services in Kubernetes, and the gateway follows them. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type Run, run } from "../../packages/runtime/fixtures/run.ts";
import { dnsMissing, startDns } from "../harness/dns.ts";
import { eventually } from "../harness/eventually.ts";
import { freePorts } from "../harness/instances.ts";
import { SECRET } from "../harness/processes.ts";

const DOMAIN = "shop.svc.cluster.test";
const NAME = `category.${DOMAIN}`;
const root = join(import.meta.dirname, "../..");

test.skipIf(dnsMissing)(
  "pods of a service come and go under load, and no caller of the gateway sees an error",
  {
    timeout: 600_000,
  },
  async () => {
    await using stack = new AsyncDisposableStack();
    const dns = stack.use(await startDns(DOMAIN));
    const dir = await mkdtemp(join(tmpdir(), "pods-"));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const port = await freePorts();
    const env = { INTERNAL_SECRET: SECRET, ADMIN_PORT: "off", LOG_FORMAT: "json", PATH: process.env.PATH ?? "" };

    const gateway = stack.use(
      run(
        [join(root, "gateway/main.ts")],
        {
          ...env,
          PORT: "0",
          LAME_DUCK: "0s",
          CATEGORY_URL: `http://category:${port}`,
          ...Object.fromEntries(["PET", "ORDER", "INVENTORY"].map((name) => [`${name}_URL`, `http://nobody:${port}`])),
        },
        false,
        dns.prefix,
      ),
    );
    const [, base] = await gateway.printed(/ready at (http:\/\/127\.0\.0\.1:\d+)/);
    const ready = async () =>
      (await fetch(`${base}/readyz`)).json() as Promise<{ failing: string[]; degraded?: string[] }>;
    const openFiles = async () => (await readdir(`/proc/${gateway.process.pid}/fd`)).length;

    /** Each pod has a store of its own: what a list shows depends on who is asked. */
    let pods: { readonly address: string; readonly process: Run }[] = [];
    let started = 0;
    async function startPod() {
      const address = `127.1.0.${++started}`;
      const DATA_DIR = join(dir, address);
      const pod = stack.use(
        run([join(root, "services/main.ts"), "category"], {
          ...env,
          HOST: address,
          PORT: String(port),
          DATA_DIR,
          LOG_LEVEL: "debug",
          PET_URL: "http://127.0.0.1:1",
        }),
      );
      await pod.printed(/ready at/);
      return { address, process: pod };
    }
    const publish = () =>
      dns.names.set(
        NAME,
        pods.map(({ address }) => address),
      );
    const served = ({ process }: (typeof pods)[number]) => process.output().match(/"msg":"served"/g)?.length ?? 0;
    async function getsItsShare(pod: (typeof pods)[number]) {
      const before = served(pod);
      await expect.poll(() => served(pod), { timeout: 60_000 }).toBeGreaterThan(before + 50);
    }

    const problems: string[] = [];
    let answered = 0;
    let writes = true;
    let underWay = 0;
    let isOver = false;
    async function client(asked: string): Promise<void> {
      while (!isOver) {
        const isWrite = asked === "write" && writes;
        // Without an idempotency key: it must not be sent twice.
        const create = { method: "POST", headers: { "content-type": "application/json" }, body: '{"name":"cats"}' };
        if (isWrite) underWay++;
        const response = await (isWrite ? fetch(`${base}/categories`, create) : fetch(`${base}/categories?limit=1`));
        const text = await response.text();
        if (isWrite) underWay--;
        if (response.status !== (isWrite ? 201 : 200)) problems.push(`${response.status} ${text}`);
        answered++;
        await sleep(2);
      }
    }

    expect(await (await fetch(`${base}/categories`)).json()).toMatchObject({ code: "UNAVAILABLE" });
    expect((await ready()).failing).toEqual(["pet", "category", "order", "inventory"]);

    pods = [await startPod(), await startPod()];
    publish();
    await eventually(async () => (await ready()).failing, ["pet", "order", "inventory"]);
    const load = Promise.all(["read", "read", "read", "write", "write"].map(client));
    for (const pod of pods) await getsItsShare(pod);
    const files = await openFiles();

    // One after the other, as a Deployment does it.
    for (let round = 0; round < 4; round++) {
      pods.push(await startPod());
      publish();
      await getsItsShare(pods.at(-1) as (typeof pods)[number]);
      const [oldest] = pods.splice(0, 1);
      publish();
      oldest?.process.process.kill("SIGTERM");
      expect(await oldest?.process.ended).toBe(0);
    }
    expect(problems).toEqual([]);

    // All at the same time, before their names were looked up again.
    const before = pods;
    pods = [await startPod(), await startPod()];
    publish();
    for (const { process } of before) process.process.kill("SIGTERM");
    for (const { process } of before) expect(await process.ended).toBe(0);
    for (const pod of pods) await getsItsShare(pod);
    expect(problems).toEqual([]);

    // Killed, and missed by DNS only later. What it had can be repeated only if it was a read.
    writes = false;
    while (underWay > 0) await sleep(20);
    for (let round = 0; round < 3; round++) {
      const [victim] = pods.splice(0, 1);
      victim?.process.process.kill("SIGKILL");
      await victim?.process.ended;
      pods.push(await startPod());
      publish();
      await getsItsShare(pods.at(-1) as (typeof pods)[number]);
    }
    // DNS knows nothing any more: the last that it said stays in use.
    dns.names.clear();
    const soFar = answered;
    const unknown = () => gateway.output().match(/"host":"category".*can't be looked up/g)?.length;
    await expect.poll(unknown, { timeout: 60_000 }).toBe(2); // and at the start
    while (answered < soFar + 500) await sleep(20);

    isOver = true;
    await load;
    expect(problems).toEqual([]);
    await eventually(ready, { status: "ready", failing: ["pet", "order", "inventory"] } as never);
    await expect.poll(openFiles, { timeout: 60_000 }).toBeLessThanOrEqual(files);
  },
);
