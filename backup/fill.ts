/** Fills a store with a backup, an export or another store, and proves that the records are there. */
import { join } from "node:path";
import { IDENTITY } from "@petstore/store/at-rest";
import { serviceNames } from "../processes/names.ts";
import { type Manifest, verifyBackup } from "./backup.ts";
import { idOf, type Line, linesOf, openLines, rowOf, type Source } from "./lines.ts";
import {
  type AllRecords,
  copyFile,
  fileOf,
  openDirectory,
  openFiles,
  openMongo,
  type Place,
  Refused,
  sync,
} from "./places.ts";
import { type Progress, showProgress } from "./progress.ts";
import { openTarget, type TargetOptions, takeIncoming } from "./targets.ts";

export interface FillOptions extends Omit<TargetOptions, "by"> {
  /** Throws if the source may have changed while it was read. */
  readonly checkUnused?: (() => Promise<void>) | undefined;
}

/** Fills a place. `moveOn`: whether ids may have been given since the records were read. Resolves to how many records it has. */
async function fill(
  source: Source,
  place: Place,
  { by, moveOn, ...options }: FillOptions & { readonly by: string; readonly moveOn: boolean },
): Promise<number> {
  await using target = await openTarget(place, { ...options, by });
  {
    using progress = showProgress("Writing records", [source.total], "records");
    await transfer(source, target.records, progress);
  }
  using progress = showProgress("Comparing records", [source.total], "records");
  const copied = await linesOf(target.records);
  const count = await prove(source, copied, progress).catch(async (error) => {
    await target.discard();
    throw error;
  });
  await options.checkUnused?.();
  if (moveOn) await moveSequencesOn(target.records);
  await target.complete();
  return count;
}

/** Fills a place with a backup, which is checked first. */
export async function restore(directory: string, place: Place, options: FillOptions): Promise<Manifest> {
  const { lines, ...manifest } = await verifyBackup(directory);
  const by = `the backup of ${manifest.instant} (${manifest.id})`;
  if (lines) await fill(lines, place, { ...options, by, moveOn: true });
  else if ("directory" in place) await restoreFiles(directory, place.directory, manifest, { ...options, by });
  else {
    using copied = openFiles(directory);
    await fill(await linesOf(copied.records), place, { ...options, by, moveOn: true });
  }
  return manifest;
}

async function restoreFiles(
  from: string,
  to: string,
  { files }: Manifest,
  options: FillOptions & { readonly by: string },
): Promise<void> {
  using target = takeIncoming(to, options);
  {
    const sizes = files.map(({ bytes }) => bytes);
    using progress = showProgress("Writing files", sizes, "bytes");
    for (const name of [...serviceNames.map(fileOf), IDENTITY]) {
      const path = join(target.incoming, name);
      await copyFile(join(from, name), path, progress.add);
      await sync(path);
    }
  }
  {
    using written = openFiles(target.incoming);
    await moveSequencesOn(written.records);
  }
  await target.complete();
}

/** Fills a place with an export. Resolves to how many records it has. */
export async function importFile(path: string, place: Place, options: FillOptions): Promise<number> {
  const source = await openLines(path);
  const by = `the export of ${source.head.instant} (${source.head.id})`;
  return fill(source, place, { ...options, by, moveOn: true });
}

/** Fills a place with what another one has, which must not be in use. Resolves to how many records it has. */
export async function copy(from: Place, to: Place, options: FillOptions): Promise<number> {
  if ("directory" in from) {
    using taken = openDirectory(from.directory);
    const by = `a copy of ${from.directory}`;
    return await fill(await linesOf(taken.records), to, { ...options, by, moveOn: false });
  }
  await using databases = await openMongo(from);
  await databases.checkFormats();
  const checkUnused = async () => {
    options.say(`Looking whether a petstore uses ${databases.name} ...`);
    if (await databases.isInUse())
      throw new Refused(`${databases.name} is in use: stop the petstore first, or make a backup and restore that.`);
  };
  await checkUnused();
  const all = new Map(serviceNames.map((service) => [service, databases.records(service)]));
  const { checkFormats: checkSource } = databases;
  const by = `a copy of ${databases.name}`;
  return await fill(await linesOf(all), to, { ...options, by, moveOn: false, checkSource, checkUnused });
}

/** Adds what the stores lack. Each collection goes on beyond its last id, where an earlier attempt may have stopped. */
export async function transfer(source: Source, to: AllRecords, progress: Progress): Promise<void> {
  const storeOf = (line: Pick<Line, "service">) => {
    const records = to.get(line.service);
    if (!records) throw new Error(`There is no store of ${line.service}.`);
    return records;
  };
  for await (const lines of source.lines((service, collection) => storeOf({ service }).last(collection))) {
    const groups = Map.groupBy(lines, (line) => `${line.service} ${"collection" in line ? line.collection : ""}`);
    for (const group of groups.values()) {
      const [first] = group as [Line];
      if ("collection" in first)
        await storeOf(first).add(first.collection, (group as Parameters<typeof rowOf>[0][]).map(rowOf));
      else for (const line of group) if ("sequence" in line) await storeOf(line).setSequence(line.sequence, line.last);
    }
    progress.add(lines.length);
  }
}

/** Throws `Refused` for the first record in which two sources differ. Resolves to how many they have. */
export async function prove(source: Source, copy: Source, progress: Progress): Promise<number> {
  const [those, these] = [each(source), each(copy)];
  for (let count = 0; ; ) {
    const [that, found] = [(await those.next()).value, (await these.next()).value];
    if (that === undefined && found === undefined) return count;
    if (JSON.stringify(that) !== JSON.stringify(found))
      throw new Refused(
        `The copy is not what it was made of: it differs at ${nameOf(that ?? found)}. Nothing of it is kept: begin anew.`,
      );
    if (that && "collection" in that) count++;
    progress.add(1);
  }
}

async function* each(source: Source): AsyncGenerator<Line, undefined> {
  for await (const lines of source.lines()) yield* lines;
  return undefined;
}

const nameOf = (line: Line | undefined): string =>
  line ? `${line.service}/${"collection" in line ? line.collection : "sequence"}/${idOf(line)}` : "";

/** How far sequences are moved on: further than anybody took numbers since the records were read. */
const GAP = 1_000_000;

/** Moves the sequences of ids on, so that none that was given since the records were read is given again. */
export async function moveSequencesOn(to: AllRecords): Promise<void> {
  for (const service of ["pet", "category", "order"] as const) {
    const records = to.get(service);
    const last = new Map(await records?.sequences()).get(service) ?? 0;
    await records?.setSequence(service, last + GAP);
  }
}
