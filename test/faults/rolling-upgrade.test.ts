/**
 * One version up and back under load, on both stores: from this version to one that brings a format of pets and an index, back,
 * up again, and on to that format; then this version is refused, and says what to do.
 *
 * On MongoDB there are two of each process, and no request fails. On the embedded store there is one, so a client gets 503 or no
 * connection until a process is back, as docs/rolling-restart.md says, and sends its request again: nothing else goes wrong, and
 * each is answered in the end. The next version is made of a copy of this one, in place: a process has loaded its code at its
 * start, and loads the other with the next.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { put } from "@petstore/store/port";
import { describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { FORMAT_MARKS } from "../../services/records/formats.ts";
import { FORMAT } from "../../services/records/record.ts";
import { type Launched, launch, procMissing } from "../harness/launched.ts";
import { mongodbMissing, openPlace } from "../harness/mongodb.ts";
import { startPetstore } from "../harness/petstore.ts";
import { SECRET } from "../harness/processes.ts";
import { openStoreOf } from "../harness/stores.ts";
import { type CopiedTree, copyTree } from "../mutants/copied-tree.ts";
import * as doors from "../workload/doors.ts";
import { clients, startSelling } from "../workload/selling.ts";
import { watched } from "../workload/watched.ts";

const CLIENTS = 4;
const READS = 9;
/** Before each request of a client: a machine that has no time left is another matter. */
const PAUSE_MS = 50;
/** As an orchestrator waits: it can't see whether the callers of a process have come back to it. */
const MIN_READY_MS = 3_000;
const LAME_DUCK = "3s";
const NEXT = `${Number(manifest.version.split(".")[0]) + 1}.0.0`;

/** The next version stores with each pet where it came from, which its documents must have. */
const next: readonly (readonly [file: string, after: string, find: string, put: string])[] = [
  ["package.json", "", `"version": "${manifest.version}"`, `"version": "${NEXT}"`],
  [
    "services/pet/model.ts",
    "const petDocSchema",
    "  state:",
    `  format: s.literal([${FORMAT}, ${FORMAT + 1}]), origin: s.string,\n  state:`,
  ],
  ["services/pet/model.ts", "export const PETS", `endedOn: ["endedOn"]`, `endedOn: ["endedOn"], origin: ["origin"]`],
  [
    "services/pet/model.ts",
    "export const PETS",
    "formats: { newest: FORMAT }",
    `formats: {
      newest: ${FORMAT + 1},
      change: {
        upgrade: (doc: object) => ({ ...doc, origin: "before" }),
        downgrade: ({ origin: _, ...doc }: { readonly origin: string }) => doc,
      },
    }`,
  ],
  ["services/pet/rules.ts", "export const insert =", "format: FORMAT", `format: FORMAT, origin: "here"`],
  ["services/pet/rules.ts", "export const insertAborted", "format: FORMAT", `format: FORMAT, origin: "here"`],
];

/** Makes the copy the next version until it is disposed of. */
function upgraded(tree: CopiedTree): Disposable {
  const stack = new DisposableStack();
  for (const [file, after, find, put] of next)
    stack.use(tree.without(file, { guard: "the next version", after, find, put }));
  return stack;
}

async function run(tree: CopiedTree, env: NodeJS.ProcessEnv, ...args: string[]) {
  const running = promisify(execFile)(process.execPath, args, { cwd: tree.root, env });
  const { stdout, stderr, code = 0 } = await running.catch((error) => error);
  return { code, stdout, output: `${stdout}${stderr}` };
}
const NOTHING_OLD = /Nothing is of an older format/;
const WAITED = new RegExp(`Processes of ${RegExp.escape(manifest.version)} still run(.|\\n)*${NOTHING_OLD.source}`);
const MIGRATE = ["backup/main.ts", "migrate"] as const;

interface Stored {
  readonly mongodbUri: string | undefined;
  readonly dataDir: string;
}

async function upAndBack(stored: Stored, replicas: number, mayFail: RegExp | undefined): Promise<void> {
  using tree = copyTree();
  const env = { LAME_DUCK, ...(stored.mongodbUri === undefined && { DATA_DIR: stored.dataDir }) };
  let petstore: Launched | undefined = await launch(stored.mongodbUri ?? "", replicas, env, tree.root);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => petstore?.[Symbol.asyncDispose]());
  const { http, names, environment } = petstore;
  const door = doors.http1(petstore);
  stack.defer(() => door.close());
  const { seen, send } = watched(door, () => sleep(PAUSE_MS));
  // Where requests fail, all are such as may be sent again.
  const selling = startSelling(clients(CLIENTS, send), { reads: READS, withoutKeys: () => mayFail === undefined });
  const restart = async (some: readonly string[]) => {
    for (const name of some) {
      await petstore?.restart(name);
      await sleep(MIN_READY_MS);
    }
  };
  await selling.more(2 * CLIENTS);
  seen.failures.length = 0; // of processes that had just been started

  {
    using _ = upgraded(tree);
    const indexes = await run(tree, environment, ...MIGRATE, "indexes");
    expect(indexes.output).toMatch(stored.mongodbUri === undefined ? /Only MongoDB/ : /All indexes that .* are there/);
    await restart(names);
    await selling.more(2 * CLIENTS);
  }
  await restart(names);
  await selling.more(2 * CLIENTS);

  {
    using _ = upgraded(tree);
    await restart(names.slice(0, -1));
    const before = await run(tree, environment, ...MIGRATE, "status");
    expect(before.output).toMatch(
      new RegExp(
        `pet: ([\\d,]+) pets, \\1 of an older format; format ${FORMAT} is written, and ${NEXT} knows ${FORMAT + 1}`,
      ),
    );
    // A process of before keeps it waiting; one that has a file open is asked itself.
    if (stored.mongodbUri === undefined) await restart(names.slice(-1));
    const up = run(tree, environment, ...MIGRATE, "up");
    if (stored.mongodbUri !== undefined) {
      expect(await Promise.race([up, sleep(10_000, "waits")])).toBe("waits");
      await restart(names.slice(-1));
    }
    expect(await up).toMatchObject({
      code: 0,
      output: expect.stringMatching(stored.mongodbUri === undefined ? NOTHING_OLD : WAITED),
    });
    await selling.more(2 * CLIENTS);
    await selling.end();
    const wrong = seen.failures.filter((failure) => !mayFail?.test(failure));
    expect(wrong).toEqual([]);
    await selling.checkShown(http);
    const { stdout } = await run(tree, environment, "doctor/main.ts", "--json");
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly invariant: string }[] };
    expect(findings.filter(({ invariant }) => !invariant.startsWith("env-"))).toEqual([]);
    expect(petstore.output().match(/^.*"level":"(error|fatal)".*$/gm) ?? []).toEqual([]);
    await petstore[Symbol.asyncDispose]();
    petstore = undefined;
    const after = await run(tree, environment, ...MIGRATE, "status");
    expect(after.output).toMatch(
      new RegExp(`pet: [\\d,]+ pets, 0 of an older format; format ${FORMAT + 1} is written\\.`),
    );
  }
  const refused = await run(
    tree,
    { ...environment, INTERNAL_SECRET: SECRET, ADMIN_PORT: "off" },
    "services/main.ts",
    "pet",
  );
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(`start ${NEXT}, or restore the backup`) });
}

test.skipIf(procMissing)("on the embedded store", { timeout: 1_800_000 }, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "petstore-"));
  try {
    await upAndBack(
      { mongodbUri: undefined, dataDir },
      1,
      /^\S+ [^:]+: (503 |.*(ECONNREFUSED|ECONNRESET|EPIPE|socket hang up))/,
    );
  } finally {
    await rm(dataDir, { recursive: true });
  }
});

describe.skipIf(mongodbMissing || procMissing)("on MongoDB", () => {
  test("a process that hears of a format that it does not know ends, and says what to do", {
    timeout: 300_000,
  }, async () => {
    await using petstore = await startPetstore({ replicas: 2, isSingle: false });
    const store = await openStoreOf(petstore, "pet");
    const marks = await store.collection(FORMAT_MARKS);
    await marks.update("pets", () => put({ _id: "pets", format: FORMAT + 1, by: NEXT }, undefined));
    await store.close();
    await petstore.ended("pet");
    const words = new RegExp(`${NEXT} of the petstore has raised .* start ${NEXT}, or restore the backup`);
    for (const name of ["pet-1", "pet-2"] as const) expect(petstore.logs(name)).toMatch(words);
    await expect(petstore.start("pet-1")).rejects.toThrow(words);
  });

  test("two of each, and no request fails", { timeout: 1_800_000 }, async () => {
    await using place = await openPlace();
    await upAndBack({ mongodbUri: place.uri, dataDir: "" }, 2, undefined);
  });
});
