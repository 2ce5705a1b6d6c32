/** The alerts beside a real Prometheus: what they are for is done to a petstore, and they fire, and end when it is over. */
import { statfsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Thresholds } from "../../monitoring/objectives.ts";
import { rulesOf } from "../../monitoring/rules.ts";
import { processNames } from "../../processes/names.ts";
import { mongodMissing, startReplicaSet } from "../harness/mongod.ts";
import { type Petstore, type PetstoreOptions, startPetstore } from "../harness/petstore.ts";
import { type Prometheus, prometheusMissing, startPrometheus } from "../harness/prometheus.ts";
import { mountSmallDisk, smallDiskMissing } from "../harness/small-disk.ts";

/** The same rules, for those who can't wait for hours. A busy machine makes a tenth of the answers slow by itself. */
const soon: Thresholds = {
  burns: [{ factor: 30, long: "15s", short: "5s" }],
  down: "2s",
  pendingSeconds: 2,
  outboxSeconds: 2,
  lasting: "1s",
};
const timeout = 600_000;
/** How long an alert may take, in milliseconds. */
const PATIENCE_MS = 120_000;

interface Watched extends AsyncDisposable {
  readonly petstore: Petstore;
  readonly prometheus: Prometheus;
  send(method: string, path: string, body?: object): Promise<number>;
}

async function startWatched(options: PetstoreOptions): Promise<Watched> {
  await using stack = new AsyncDisposableStack();
  const petstore = stack.use(await startPetstore({ ...options, env: { ADMIN_PORT: "" } }));
  const targets = processNames.map((name) => `127.0.0.1:${Number(new URL(petstore.url(name)).port) + 100}`);
  const prometheus = stack.use(await startPrometheus(targets, rulesOf(soon)));
  const headers = { "content-type": "application/json" };
  const opened = stack.move();
  return {
    petstore,
    prometheus,
    async send(method, path, body) {
      const answer = await fetch(petstore.http + path, { method, headers, body: body ? JSON.stringify(body) : null });
      await answer.arrayBuffer();
      return answer.status;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Loads it ten times a second, whether answers come or not, until these alerts fire; for no name, until none does. */
async function untilFiring({ prometheus }: Watched, wanted: readonly string[], load: () => Promise<unknown>) {
  const loading = setInterval(() => void load().catch(() => {}), 100);
  try {
    for (const until = Date.now() + PATIENCE_MS; ; await sleep(200)) {
      const firing = await prometheus.firing();
      if (wanted.length > 0 ? wanted.every((name) => firing.includes(name)) : firing.length === 0) return;
      if (Date.now() > until) expect(firing).toEqual(wanted);
    }
  } finally {
    clearInterval(loading);
  }
}
const calm = (watched: Watched, load: () => Promise<unknown>) => untilFiring(watched, [], load);

describe.skipIf(prometheusMissing)("alerts fire", () => {
  test("for a killed process, and for what waits for it; for one that hangs", { timeout }, async () => {
    await using watched = await startWatched({});
    const { petstore, send } = watched;
    const load = () => Promise.all(["/pets", "/categories"].map((path) => send("GET", path)));
    expect(await send("POST", "/categories", { name: "dogs" })).toBe(201);
    expect(await send("POST", "/pets", { name: "Rex", categoryId: 1 })).toBe(201);
    expect(await send("PUT", "/store/inventory/1", { quantity: 1 })).toBe(200);
    await calm(watched, load);

    await petstore.kill("pet");
    expect(await send("POST", "/store/orders", { petId: 1 })).toBe(201);
    await untilFiring(watched, ["PetstoreDown", "PetstoreFailing", "PetstoreOutboxLag"], load);
    await petstore.start("pet");
    await calm(watched, load);

    await petstore.kill("inventory");
    expect(await send("DELETE", "/pets/1")).toBe(503);
    await untilFiring(watched, ["PetstoreDown", "PetstoreUnfinished"], load);
    await petstore.start("inventory");
    await calm(watched, load);

    await petstore.kill("category", "SIGSTOP");
    await untilFiring(watched, ["PetstoreDown", "PetstoreFailing"], load);
    await petstore.kill("category", "SIGCONT");
    await calm(watched, load);
  });

  test("for calls that are slow", { timeout }, async () => {
    const dir = await mkdtemp(join(tmpdir(), "faults-"));
    onTestFinished(() => rm(dir, { recursive: true }));
    await using watched = await startWatched({});
    const { petstore, send } = watched;
    const load = () => send("GET", "/pets");
    await calm(watched, load);
    const faults = join(dir, "faults.json");
    writeFileSync(faults, JSON.stringify([{ match: "*", rate: 1, delay: "500ms" }]));
    await petstore.kill("gateway");
    await petstore.start("gateway", { FAULTS_FILE: faults });
    await untilFiring(watched, ["PetstoreSlow"], load);
    await petstore.kill("gateway");
    await petstore.start("gateway");
    await calm(watched, load);
  });

  test.skipIf(mongodMissing)("for a MongoDB that is stopped", { timeout }, async () => {
    await using set = await startReplicaSet();
    await using watched = await startWatched({ mongodbUri: set.uri });
    const load = () => watched.send("POST", "/categories", { name: `${Math.random()}` });
    await calm(watched, load);
    const primary = await set.primary();
    primary.signal("SIGKILL");
    await untilFiring(watched, ["PetstoreFailing"], load);
    await primary.restart();
    await calm(watched, load);
  });

  test.skipIf(smallDiskMissing)("for a full disk", { timeout }, async () => {
    await using disk = await mountSmallDisk(4);
    await using watched = await startWatched({ dataDir: join(disk.dir, "data") });
    const load = () => watched.send("POST", "/categories", { name: `${Math.random()}` });
    await calm(watched, load);
    const { bavail, bsize } = statfsSync(disk.dir);
    writeFileSync(join(disk.dir, "filler"), Buffer.alloc(bavail * bsize));
    await untilFiring(watched, ["PetstoreFailing"], load);
    await rm(join(disk.dir, "filler"));
    await calm(watched, load);
  });
});
