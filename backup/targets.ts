/**
 * Stores that are being filled. No petstore starts with one that is not complete, and what is there stays until the new one is:
 * a directory is filled in a directory inside it, whose files are moved when they are complete.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { giveIdentity, IDENTITY, INCOMING, openNew } from "@petstore/store/at-rest";
import { Corrupt } from "@petstore/store/port";
import { serviceNames } from "../processes/names.ts";
import {
  type AllRecords,
  fileOf,
  holdsData,
  type MongoPlace,
  openFiles,
  openMongo,
  ownAs,
  type Place,
  Refused,
  sync,
  takeUnused,
} from "./places.ts";

export interface Target extends AsyncDisposable {
  readonly records: AllRecords;
  /** From now on it is the petstore's. */
  complete(): Promise<void>;
  /** Whoever fills it next begins anew. */
  discard(): Promise<void>;
}

export interface TargetOptions {
  /** Whether data that is there gives way. */
  readonly replace: boolean;
  /** What it is filled by. What was begun by the same is gone on with. */
  readonly by: string;
  /** Tells people what is waited for. */
  readonly say: (text: string) => void;
  /** Called when the place can be seen to be filled: throws if it is also the source. */
  readonly checkSource?: (() => Promise<void>) | undefined;
}

const holds = (where: string) =>
  new Refused(`${where} holds data, which stays: name another place by --store or --to, or replace it with --replace.`);
const begun = (where: string, by: string) =>
  new Refused(`${where} was begun to be filled by ${by}: go on with that, or begin anew with --replace.`);

/** Opens a place to be filled. Throws `Refused` or `StoreLocked` if it holds data or is in use. */
export const openTarget = (place: Place, options: TargetOptions): Promise<Target> =>
  "directory" in place ? openIncoming(place.directory, options) : openDatabases(place, options);

async function openIncoming(directory: string, options: TargetOptions): Promise<Target> {
  await using stack = new AsyncDisposableStack();
  const { incoming, complete } = stack.use(takeIncoming(directory, options));
  const files = stack.use(openFiles(incoming, openNew));
  return Object.assign(stack.move(), {
    records: files.records,
    complete() {
      files[Symbol.dispose]();
      return complete();
    },
    async discard() {
      files[Symbol.dispose]();
      rmSync(incoming, { recursive: true });
    },
  });
}

/** Takes a directory, and makes one inside it for the files that will be its own once they are `complete`. */
export function takeIncoming(directory: string, { replace, by }: Omit<TargetOptions, "say">) {
  if (holdsData(directory) && !replace) throw holds(directory);
  using stack = new DisposableStack();
  stack.use(takeUnused(directory));
  const incoming = join(directory, INCOMING);
  const there = lstatSync(incoming, { throwIfNoEntry: false });
  if (there && !(there.isDirectory() && there.uid === (process.getuid?.() ?? there.uid)))
    throw new Refused(`${incoming} is another user's, or no directory: remove it, or run this as its user.`);
  /** Names what it is filled by. */
  const note = join(incoming, "from");
  const former = existsSync(note) ? readFileSync(note, "utf8") : undefined;
  if (former !== undefined && former !== by && !replace) throw begun(directory, former);
  if (former !== by) rmSync(incoming, { recursive: true, force: true });
  mkdirSync(incoming, { recursive: true, mode: 0o700 });
  writeFileSync(note, by);
  return Object.assign(stack.move(), {
    incoming,
    async complete(): Promise<void> {
      const names = serviceNames.map(fileOf);
      // What is cut short from here on is begun anew.
      rmSync(note);
      giveIdentity(incoming, names);
      for (const name of readdirSync(directory))
        if (/\.db-(wal|shm|journal)$/.test(name)) rmSync(join(directory, name));
      // The identity first: files of before don't have it, so no petstore starts with some of them among the others.
      for (const name of [IDENTITY, ...names]) {
        ownAs(directory, join(incoming, name));
        renameSync(join(incoming, name), join(directory, name));
      }
      await sync(directory);
      rmSync(incoming, { recursive: true });
    },
  });
}

async function openDatabases(place: MongoPlace, options: TargetOptions): Promise<Target> {
  const { replace, by, say, checkSource } = options;
  await using stack = new AsyncDisposableStack();
  const databases = stack.use(await openMongo(place));
  const former = await databases.fills();
  if (former !== undefined && former !== by && !replace) throw begun(databases.name, former);
  if (former === undefined && !replace && (await databases.holdData())) throw holds(databases.name);
  say(`Looking whether a petstore uses ${databases.name} ...`);
  if (await databases.isInUse()) throw new Refused(`${databases.name} is in use: stop the petstore first.`);
  const isAnew = replace && former !== by;
  // Nobody goes on with what is cut short before it is empty.
  const undo = await databases.fill(isAnew ? "the removal of what it held" : by);
  await checkSource?.().catch(async (error) => {
    await undo();
    throw error instanceof Corrupt ? new Refused(`${databases.name} can't be copied to itself.`) : error;
  });
  if (isAnew) {
    await databases.clear();
    await databases.fill(by);
  }
  return Object.assign(stack.move(), {
    records: new Map(serviceNames.map((service) => [service, databases.records(service)])),
    complete: databases.filled,
    discard: databases.clear,
  });
}
