/**
 * Profiles the petstore under load: starts it with V8's profiler in each process, writes a flame graph and the profile of each
 * process, and prints what costs the most. See `--help`.
 */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { startPetstore } from "../../test/harness/petstore.ts";
import { type CpuProfile, callsBetween, functionOf, partOf, topCosts } from "./cpu-profile.ts";
import { flameGraph } from "./flame-graph.ts";

/** More pets than a service caches. */
const PETS = 2000;
const CATEGORIES = 50;
/** Concurrent requests while the petstore is filled. */
const FILLING = 50;
/** Duration of the load before the measurement, in milliseconds: enough for V8 to compile the hot code. */
const WARM_UP_MS = 3000;
/** A process that was busy for a smaller share of the time gets no table. */
const LEAST_WORK = 0.02;

type Send = (method: string, path: string, body?: object) => Promise<unknown>;

/** More units of a pet than any run takes. */
const STOCK = 1_000_000;

const anyPet = () => 1 + Math.floor(Math.random() * PETS);
const anyCategory = () => 1 + Math.floor(Math.random() * CATEGORIES);
const postPet = (send: Send) => send("POST", "/pets", { name: "Rex", categoryId: anyCategory() });
const order = (send: Send) => send("POST", "/store/orders", { petId: anyPet() });
const workloads: Record<string, { readonly about: string; readonly step?: (send: Send) => Promise<unknown> }> = {
  get: { about: `GET one of ${PETS} pets`, step: (send) => send("GET", `/pets/${anyPet()}`) },
  hot: { about: "GET the same pet", step: (send) => send("GET", "/pets/1") },
  list: { about: "GET the same page of 20 pets", step: (send) => send("GET", "/pets?limit=20") },
  pages: { about: "GET different pages of 20 pets", step: (send) => send("GET", `/pets?limit=20&id=${idsOfPage()}`) },
  filters: {
    about: "GET 20 pets of one category, every other time only those for sale",
    step: (send) =>
      send("GET", `/pets?limit=20&categoryId=${anyCategory()}${Math.random() < 0.5 ? "&status=available" : ""}`),
  },
  post: { about: "POST a pet", step: postPet },
  orders: { about: `POST an order for one unit of one of ${PETS} pets`, step: order },
  mixed: {
    about: "8 of 10 get, 1 of 10 list, 1 of 10 orders",
    step(send) {
      const part = Math.random() * 10;
      if (part < 8) return send("GET", `/pets/${anyPet()}`);
      return part < 9 ? send("GET", "/pets?limit=20") : order(send);
    },
  },
  start: { about: "nothing but the start of the processes" },
};
const idsOfPage = () => Array.from({ length: 20 }, anyPet).join(",");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    connections: { type: "string", default: "50" },
    seconds: { type: "string", default: "5" },
    top: { type: "string", default: "15" },
    out: { type: "string", default: ".cache/profile" },
    help: { type: "boolean", default: false },
  },
});
const help = `npm run profile -- [workload] [options]

${Object.entries(workloads)
  .map(([name, { about }]) => `  ${name.padEnd(20)}${about}`)
  .join("\n")}

  --connections N     that ask at a time, each for the next when it has its answer (50)
  --seconds N         measured, after a warm-up (5)
  --top N             lines of each table (15)
  --out DIRECTORY     of the flame graphs (SVG) and profiles (.cpuprofile, for a browser's developer tools) (.cache/profile)

The store is the embedded one; with PETSTORE_TEST_STORE=mongodb it is in MongoDB. With PETSTORE_TEST_SINGLE_PROCESS=1 the
petstore is one process.
`;

const [workload = "get"] = positionals;
const work = workloads[workload];
if (values.help || !work) {
  process.stdout.write(help);
  process.exit(values.help ? 0 : 1);
}
const [connections, measuredMs, top] = [Number(values.connections), 1000 * Number(values.seconds), Number(values.top)];

const monotonicMicros = () => Number(process.hrtime.bigint() / 1000n);
const raw = await mkdtemp(join(import.meta.dirname, "../../node_modules/.cache/profile-"));
try {
  const [from, to, requests] = await run();
  await report(from, to, requests);
} finally {
  await rm(raw, { recursive: true, force: true });
}

/** Resolves to the start and end of the measured part, in microseconds, and the number of its requests. */
async function run(): Promise<readonly [number, number, number]> {
  const startedAt = monotonicMicros();
  progress("starting", 0);
  const env = { LOG_LEVEL: "info", NODE_OPTIONS: `--cpu-prof --cpu-prof-interval=200 --cpu-prof-dir=${raw}` };
  await using petstore = await startPetstore({ env });
  if (!work?.step) return [startedAt, monotonicMicros(), 0];
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const send = sender(petstore.http, agent);
  await fill(send);
  const { step } = work;
  let requests = 0;
  let over = false;
  const ask = async () => {
    for (; !over; requests++) await step(send);
  };
  const asking = Array.from({ length: connections }, ask);
  await Promise.race([...asking, wait("warming up", WARM_UP_MS)]);
  const [from, before] = [monotonicMicros(), requests];
  await Promise.race([...asking, wait(`measuring ${workload}`, measuredMs)]);
  const [to, counted] = [monotonicMicros(), requests - before];
  over = true;
  await Promise.all(asking);
  agent.destroy();
  return [from, to, counted];
}

async function fill(send: Send): Promise<void> {
  for (let id = 1; id <= CATEGORIES; id++) await send("POST", "/categories", { name: `category ${id}` });
  const ids = Array.from({ length: PETS }, (_, i) => i + 1);
  for (let done = 0; done < PETS; done += FILLING) {
    progress("filling", done / PETS);
    const some = ids.slice(done, done + FILLING);
    await Promise.all(some.map(() => postPet(send)));
    await Promise.all(some.map((id) => send("PATCH", `/store/inventory/${id}`, { quantity: STOCK })));
  }
}

function sender(origin: string, agent: Agent): Send {
  return async (method, path, body) => {
    const headers = body ? { "content-type": "application/json" } : {};
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const call = request(origin + path, { method, agent, headers }, (answer) => {
      const ok = (answer.statusCode ?? 500) < 300;
      readAll(answer).then((text) => (ok ? resolve(text) : reject(new Error(`${method} ${path}: ${text}`))), reject);
    });
    call.on("error", reject).end(body && JSON.stringify(body));
    return promise;
  };
}

async function wait(what: string, ms: number): Promise<void> {
  for (let waited = 0; waited < ms; waited += 100) {
    progress(what, waited / ms);
    await sleep(100);
  }
  progress("", 1);
}

function progress(what: string, share: number): void {
  if (!process.stderr.isTTY) return;
  const done = Math.round(30 * share);
  process.stderr.write(what ? `\r\x1b[K${"█".repeat(done)}${"░".repeat(30 - done)} ${what}` : "\r\x1b[K");
}

/** A file that every process of this kind runs. */
function fileOf(kind: ProcessName): string {
  return kind === "gateway" ? "gateway/serve.ts" : `services/${kind}/service.ts`;
}

async function report(from: number, to: number, requests: number): Promise<void> {
  const project = join(import.meta.dirname, "../..");
  await mkdir(values.out, { recursive: true });
  const files = await readdir(raw);
  const profiles = await Promise.all(
    files.map(async (name) => {
      const file = join(raw, name);
      const text = await readFile(file, "utf8");
      return {
        file,
        kinds: processNames.filter((kind) => text.includes(fileOf(kind))),
        profile: JSON.parse(text) as CpuProfile,
      };
    }),
  );
  for (const kind of processNames) {
    const found = profiles.find(({ kinds }) => kinds[0] === kind);
    // One process is of every kind.
    if (!found) continue;
    const { profile, file, kinds } = found;
    const name = kinds.length > 1 ? "petstore" : kind;
    const root = callsBetween(profile, from, to, project);
    const each = requests > 0 ? `, ${Math.round(root.total / requests)} us for each of ${requests} requests` : "";
    const title = `${name}: ${workload}, ${(root.total / 1e6).toFixed(2)} s of work${each}`;
    const path = join(values.out, `${workload}-${name}`);
    await writeFile(`${path}.svg`, flameGraph(root, title));
    await rename(file, `${path}.cpuprofile`);
    const table = (costs: ReturnType<typeof topCosts>) =>
      costs.map(({ what, share }) => `  ${(100 * share).toFixed(1).padStart(5)} %  ${what}\n`).join("");
    if (root.total < LEAST_WORK * (to - from)) continue;
    process.stdout.write(
      `\n${title}\n${path}.svg\n by function\n${table(topCosts(root, top, functionOf))} by package or file\n${table(topCosts(root, top, partOf))}`,
    );
  }
}
