/**
 * `npm run data -- migrate`: what an upgrade asks of the stores. Services rewrite their own records (`format-marks.ts`); this has
 * them do it, and says how far they are.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { realTime } from "@petstore/runtime/clock";
import type { Environment } from "@petstore/runtime/environment";
import { createLogger } from "@petstore/runtime/log";
import type { Inspection, Kind } from "@petstore/store/rows";
import { type DoctorConfig, doctorConfig } from "../doctor/config.ts";
import { CannotLook, createFindings } from "../doctor/findings.ts";
import { markOf, schemasOf } from "../doctor/look.ts";
import { isRead, list } from "../doctor/reading.ts";
import { type OpenStores, openForChange, openStores } from "../doctor/stores.ts";
import manifest from "../package.json" with { type: "json" };
import { adminUrlOf, type ServiceName, serviceNames } from "../processes/names.ts";
import { showProgress } from "../processes/progress.ts";
import { openProof } from "../services/proof.ts";
import type { withFormats } from "../services/records/format-marks.ts";
import { type Numbered, writtenFormat } from "../services/records/formats.ts";
import { Refused } from "./places.ts";
import { showProgress as showBar } from "./progress.ts";

type Say = (text: string) => void;
const { version } = manifest;
const LOOK_MS = 1_000;
const log = createLogger({ service: "data", level: "silent", format: "json" });

const steps = { status, up, indexes } as const;
type Step = keyof typeof steps;
export const isStep = (step: string): step is Step => Object.hasOwn(steps, step);

/** Throws `Refused` or `CannotLook`. */
export const migrate = (step: Step, environment: Environment, say: Say): Promise<void> =>
  steps[step](doctorConfig(environment), say);

type Found = Awaited<ReturnType<typeof look>>[number];

async function status(config: DoctorConfig, say: Say): Promise<void> {
  await using open = await openStores(config, realTime, "npm run data");
  const all = await look(open);
  for (const { service, name, count, old, written, newest } of all) {
    const known = written < newest ? `, and ${version} knows ${newest}` : "";
    say(
      `${service}: ${inFull(count)} ${name}, ${inFull(old)} of an older format; format ${written} is written${known}.`,
    );
  }
  if (all.some(isDue)) say("When every process is of this version: npm run data -- migrate up");
}

const inFull = (count: number): string => count.toLocaleString("en");
const isDue = ({ old, written, newest }: Found): boolean => old > 0 || written < newest;

/** Has written in the newest format what was not, and watches until nothing is old. */
async function up(config: DoctorConfig, say: Say): Promise<void> {
  for (;;) {
    const { due, isLive } = await begin(config, say);
    if (due.length === 0) return say(`Nothing is of an older format than ${version} knows.`);
    for (const { service } of due) await raise(service, config, isLive);
    if (!isLive) return say("The petstore rewrites it once it runs: start it, and give the same command again.");
    await rewritten(config, due);
  }
}

async function begin(config: DoctorConfig, say: Say) {
  await using open = await openStores(config, realTime, "npm run data");
  const due = (await look(open)).filter(isDue);
  if (due.length > 0) await othersGone(open, say);
  return { due, isLive: open.isLive };
}

/** Waits until no process of another version works with the databases. A file is open in one process, which is asked itself. */
async function othersGone({ atRest }: OpenStores, say: Say): Promise<void> {
  let said = "";
  for (;;) {
    const seen = await Promise.all([...(atRest?.values() ?? [])].map((store) => store.versions()));
    if (seen.includes(undefined))
      return say(
        `Who else works with MongoDB can't be seen without its role clusterMonitor: older versions than ${version} will stop.`,
      );
    const others = new Set(seen.flatMap((versions) => [...(versions ?? [])]).filter((other) => other !== version));
    if (others.size === 0) return;
    const waits = `Processes of ${[...others].join(", ")} still run, and this is ${version}: waiting until they are gone ...`;
    if (waits !== said) say(waits);
    said = waits;
    await sleep(LOOK_MS);
  }
}

async function raise(service: ServiceName, config: DoctorConfig, isLive: boolean): Promise<void> {
  if (isLive && config.mongodbUri === undefined) return raiseLive(service, config);
  await withStore(service, config, (formats) => formats.raise());
}

async function raiseLive(service: ServiceName, config: DoctorConfig): Promise<void> {
  using proof = openProof(config.dataDir);
  for (const process of [service, "gateway"] as const) {
    const url = `${adminUrlOf(process, config.adminPorts)}/stored/${service}/formats?${proof.query}`;
    const asked = { method: "PUT", body: JSON.stringify({ version }), signal: AbortSignal.timeout(10 * LOOK_MS) };
    const answer = await fetch(url, asked).catch(() => undefined);
    if (answer?.ok) return;
    if (answer && answer.status !== 404) throw new Refused(`${service} says: ${(await answer.json()).message}`);
  }
  throw new CannotLook(`${service} does not answer at its admin port any more: look at its log, and begin again.`);
}

/** Watches until the services have come to the end of these records. */
async function rewritten(config: DoctorConfig, due: readonly Found[]): Promise<void> {
  using progress = showBar(
    "Rewriting",
    due.map(({ last }) => last),
    "records",
  );
  await using open = await openStores(config, realTime, "npm run data");
  for (let before = 0; ; await sleep(LOOK_MS)) {
    const marks = await Promise.all(due.map(({ service, name }) => markOf(inspectedIn(open, service), service, name)));
    const now = due.reduce((sum, { last }, i) => sum + (marks[i]?.done ? last : (marks[i]?.after ?? 0)), 0);
    progress.add(now - before);
    before = now;
    if (marks.every((mark) => mark?.done)) return;
  }
}

/** Builds in MongoDB the indexes that this version declares, while older processes run. */
async function indexes(config: DoctorConfig, say: Say): Promise<void> {
  if (config.mongodbUri === undefined)
    throw new Refused(
      "Only MongoDB builds indexes while others work: on the embedded store a service does at its start.",
    );
  {
    await using _ = await openStores(config, realTime, "npm run data"); // refuses what is no petstore's
  }
  for (const service of serviceNames)
    await withStore(service, config, async ({ store }) => {
      for (const schema of schemasOf(service)) {
        say(`${service}: the indexes of ${schema.name} ...`);
        await store.collection(schema as Parameters<typeof store.collection>[0]);
      }
    });
  say(`All indexes that ${version} declares are there.`);
}

const recordsOf = (service: ServiceName) => schemasOf(service).filter((schema) => "formats" in schema);

/** Opens the store of a service and its records, for a change. */
async function withStore<R>(
  service: ServiceName,
  config: DoctorConfig,
  work: (formats: ReturnType<typeof withFormats>) => Promise<R>,
): Promise<R> {
  await using stack = new AsyncDisposableStack();
  const formats = await openForChange(service, config, realTime, log, stack);
  for (const schema of recordsOf(service)) await formats.store.collection(schema as never);
  return await work(formats);
}

function inspectedIn({ inspected }: OpenStores, service: ServiceName): Inspection {
  if (inspected) return inspected[service];
  throw new CannotLook("A store can't be read: npm run doctor says why.");
}

/** How many records each service has, and how many are of an older format than this version knows; the highest id of all. */
async function look(open: OpenStores) {
  using progress = showProgress(process.stderr, realTime.clock);
  const all = [];
  for (const service of serviceNames)
    for (const schema of recordsOf(service)) {
      const { name, formats } = schema;
      const { newest } = formats;
      let [count, old, last] = [0, 0, 0];
      const from = inspectedIn(open, service);
      const kind = { ...schema, indexes: {} } as unknown as Kind<Numbered>;
      // What services can't read is for the doctor.
      for await (const { _id, doc } of list({ service, from, kind, name: service }, createFindings(), progress.note)) {
        count++;
        if (isRead(doc) && doc.format < newest) old++;
        last = Math.max(last, Number(_id) || 0);
      }
      const written = writtenFormat(formats, await markOf(from, service, name));
      all.push({ service, name, count, old, last, newest, written });
    }
  return all;
}
