/**
 * Opens the four stores, each for a change or all for a look: at rest, in MongoDB, or through the admin ports of a petstore that
 * has its files open.
 */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { realTime } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import { takeDirectory } from "@petstore/store/directory";
import { openInspection, openStore } from "@petstore/store/open";
import { Corrupt, NotWritable, StoreLocked, UnusableServer } from "@petstore/store/port";
import { type Inspection, type Problem, readRow, type StoreAtRest } from "@petstore/store/rows";
import manifest from "../package.json" with { type: "json" };
import { adminUrlOf, type ServiceName, serviceNames } from "../processes/names.ts";
import type { OnProgress } from "../processes/progress.ts";
import { openProof, type Proof } from "../services/proof.ts";
import { withFormats } from "../services/records/format-marks.ts";
import type { Question, ShownRow } from "../services/stored.ts";
import type { DoctorConfig } from "./config.ts";
import { around, byItself, CannotLook, type Finding, finding } from "./findings.ts";
import type { AllInspected } from "./look.ts";

type Time = Pick<typeof realTime, "clock" | "sleep">;

export interface OpenStores extends AsyncDisposable {
  /** Undefined if one of them can't be read: `problems` says why. */
  readonly inspected: AllInspected | undefined;
  /** Undefined while a petstore has the files open. */
  readonly atRest: ReadonlyMap<ServiceName, StoreAtRest> | undefined;
  readonly isLive: boolean;
  problems(progress?: OnProgress): Promise<Finding[]>;
}

/** Throws `CannotLook`. As long as it is open, no petstore starts in this DATA_DIR, and its log says that the command `by` has it. */
export async function openStores(config: DoctorConfig, time: Time, by = "npm run doctor"): Promise<OpenStores> {
  if (config.mongodbUri === undefined) return openDirectory(config, time, by);
  try {
    await using stack = new AsyncDisposableStack();
    const { atRest } = await openAll(config, time, stack);
    const empty = await Promise.all([...atRest.values()].map((store) => store.isEmpty()));
    if (!empty.includes(false)) throw new CannotLook("There is no petstore in the databases that MONGODB_URI names.");
    return opened(atRest, await isInUse(atRest), [], stack.move());
  } catch (error) {
    if (!(error instanceof UnusableServer)) throw error;
    throw new CannotLook(`MONGODB_URI ${error.problem}.`, /too old|standalone/.test(error.problem));
  }
}

/** Whether another process works with one of them. */
export async function isInUse(stores: ReadonlyMap<ServiceName, StoreAtRest>): Promise<boolean> {
  return (await Promise.all([...stores.values()].map((store) => store.isInUse()))).includes(true);
}

async function openDirectory(config: DoctorConfig, time: Time, by: string): Promise<OpenStores> {
  const { dataDir } = config;
  const missing = serviceNames.filter((service) => !existsSync(join(dataDir, `${service}.db`)));
  if (missing.length === serviceNames.length)
    throw new CannotLook(
      `There is no petstore in ${dataDir}: set DATA_DIR to its directory, or MONGODB_URI if its data is there.`,
    );
  try {
    await using stack = new AsyncDisposableStack();
    stack.use(takeDirectory(dataDir, by));
    const { atRest, problems } = await openAll(config, time, stack);
    return opened(atRest, false, problems, stack.move());
  } catch (error) {
    if (error instanceof StoreLocked)
      return openLive(config).catch((live) => {
        // A backup or another doctor may have it, and no petstore.
        throw live instanceof CannotLook ? new CannotLook(`${error.message}\n${live.message}`) : live;
      });
    if (error instanceof NotWritable) throw new CannotLook(error.message);
    throw error;
  }
}

/** Opens what can be opened. Files are opened one after the other, and so is what they share. */
async function openAll({ dataDir, mongodbUri }: DoctorConfig, time: Time, stack: AsyncDisposableStack) {
  const atRest = new Map<ServiceName, StoreAtRest>();
  const problems: Finding[] = [];
  for (const service of serviceNames)
    try {
      const store = await openInspection({ service, dataDir, mongodbUri }, time);
      stack.defer(() => store.close());
      atRest.set(service, store);
    } catch (error) {
      if (!(error instanceof Corrupt)) throw error;
      const isThere = existsSync(join(dataDir, `${service}.db`));
      problems.push(finding(isThere ? "corrupt-document" : "identity-mixed", [`${service}.db`], error.message));
    }
  return { atRest, problems };
}

function opened(
  atRest: ReadonlyMap<ServiceName, StoreAtRest>,
  isLive: boolean,
  known: readonly Finding[],
  stack: AsyncDisposableStack,
): OpenStores {
  return Object.assign(stack, {
    inspected: known.length > 0 ? undefined : (Object.fromEntries(atRest) as unknown as AllInspected),
    atRest,
    isLive,
    async problems(progress?: OnProgress) {
      const found = [...known];
      for (const [service, store] of atRest) {
        progress?.(`the store of ${service} as a whole`);
        found.push(...(await store.problems()).map((one) => problem(service, one)));
      }
      // What is said of one server four times is one finding.
      return [...new Map(found.map((one) => [`${one.invariant} ${one.detail}`, one])).values()];
    },
  });
}

function problem(service: ServiceName, { about, text }: Problem): Finding {
  if (about === "identity") return finding("identity-mixed", [service], text);
  if (about === "file") return finding("corrupt-document", [service], text);
  if (about === "index") return finding("index-missing", [service], text, { mend: byItself, of: service });
  return around(`env-${about}`, text);
}

/** Where the services of a petstore show what they have stored. */
export type Ports = Pick<DoctorConfig, "dataDir" | "adminPorts">;

/** Throws `CannotLook`. `stop` ends what is asked. */
export async function openLive(
  { dataDir, adminPorts }: Ports,
  stop?: AbortSignal,
): Promise<OpenStores & { readonly inspected: AllInspected }> {
  if (adminPorts.ADMIN_PORT === "off")
    throw new CannotLook("The petstore runs without admin ports (ADMIN_PORT=off): stop it to look.");
  await using stack = new AsyncDisposableStack();
  const proof = stack.use(openProof(dataDir));
  const live = serviceNames.map(async (service) => {
    const urls = [adminUrlOf(service, adminPorts), adminUrlOf("gateway", adminPorts)];
    return [service, await inspectLive(service, urls, proof, stop)] as const;
  });
  const inspected = Object.fromEntries(await Promise.all(live)) as unknown as AllInspected;
  return Object.assign(stack.move(), { inspected, atRest: undefined, isLive: true, problems: async () => [] });
}

/** Reading a page may have to wait for other work. In milliseconds. */
const PATIENCE_MS = 30_000;

/** A service has loaded this anyway, and not what only fetch needs. */
async function fetched(url: string, signal: AbortSignal) {
  const request = get(url, { signal });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

/**
 * The store of a service that runs on the embedded engine, seen through its admin port. `urls` are the admin ports where it
 * may be: its own, or that of a petstore in one process.
 */
export async function inspectLive(
  service: ServiceName,
  urls: readonly string[],
  proof: Proof,
  stop?: AbortSignal,
): Promise<Inspection> {
  let base: string | undefined;
  async function ask<A>({ call, args }: Question): Promise<A> {
    const q = encodeURIComponent(JSON.stringify({ call, args }));
    for (const url of base === undefined ? urls : [base]) {
      const patience = AbortSignal.timeout(PATIENCE_MS);
      const signal = stop ? AbortSignal.any([stop, patience]) : patience;
      const answer = await fetched(`${url}/stored/${service}?${proof.query}&q=${q}`, signal).catch(() => undefined);
      if (answer?.status === 500)
        throw new CannotLook(`${service} could not read what it has stored: its log says why.`);
      if (answer?.status !== 200) continue;
      base = url;
      return (JSON.parse(answer.body) as { readonly answer: A }).answer;
    }
    throw new CannotLook(
      `To look at a petstore that runs: ${service} shows nothing at its admin port (${urls.join(", ")}): ` +
        "see to PORT_BASE, ADMIN_HOST and ADMIN_PORT, which must be as the petstore has them, and look as its user; or stop it.",
    );
  }
  const rows = async (question: Question) =>
    (await ask<ShownRow[]>(question)).map(({ doc, ...row }) => ({ ...row, doc: Buffer.from(doc, "base64") }));

  await ask({ call: "sequences", args: [] });
  return {
    // JSON has no undefined.
    page: (collection, limit, after) =>
      rows({ call: "page", args: after === undefined ? [collection, limit] : [collection, limit, after] }),
    many: inPieces(MANY, (collection, ids) => rows({ call: "many", args: [collection, ids] })),
    read: readRow,
    sequences: () => ask({ call: "sequences", args: [] }),
    wrongIndexes: ({ name, indexes }) => ask({ call: "wrongIndexes", args: [{ name, indexes }] }),
  };
}

/** A target has 16 KiB at most. */
const MANY = 200;

/** Asks for documents by so many ids at a time. */
export const inPieces =
  (size: number, many: Inspection["many"]): Inspection["many"] =>
  async (collection, ids) => {
    const found = [];
    for (let i = 0; i < ids.length; i += size) found.push(...(await many(collection, ids.slice(i, i + size))));
    return found;
  };

/** Opens the store of a service that nobody else has open, or that is in MongoDB, until the stack is disposed. */
export async function openForChange(
  service: ServiceName,
  config: DoctorConfig,
  time: typeof realTime,
  log: Logger,
  stack: AsyncDisposableStack,
) {
  const onFatal = (error: unknown) => {
    throw error;
  };
  const store = await openStore({ ...config, service }, { ...time, log, onFatal });
  stack.defer(() => store.close());
  return withFormats(store, { service, version: manifest.version, ...time });
}
