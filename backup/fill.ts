/** What fills a store: a backup, an export or another store. */
import { createReadStream, createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { IDENTITY, openAtRest, recordsIn } from "@petstore/store/at-rest";
import { serviceNames } from "../processes/names.ts";
import { type Manifest, openCopies, verifyBackup } from "./backup.ts";
import { linesOf, openLines, type Source } from "./lines.ts";
import { fileOf, openDirectory, openMongo, type Place, Refused, recordsOf } from "./places.ts";
import { showProgress } from "./progress.ts";
import { openTarget, takeIncoming } from "./targets.ts";
import { moveSequencesOn, prove, transfer } from "./transfer.ts";

export interface FillOptions {
  readonly replace: boolean;
  readonly say: (text: string) => void;
  readonly checkSource?: (() => Promise<void>) | undefined;
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
    using progress = showProgress("Writing records", source.total, "records");
    await transfer(source, target.records, progress);
  }
  using progress = showProgress("Comparing records", source.total, "records");
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
    using copied = openCopies(directory);
    await fill(await linesOf(recordsOf(copied.files)), place, { ...options, by, moveOn: true });
  }
  return manifest;
}

const showChecking = (records: number) => showProgress("Checking records", records, "records");

async function restoreFiles(
  from: string,
  to: string,
  { files }: Manifest,
  options: FillOptions & { readonly by: string },
): Promise<void> {
  using target = takeIncoming(to, options);
  {
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    using progress = showProgress("Writing files", total, "bytes");
    for (const name of [...serviceNames.map(fileOf), IDENTITY]) {
      const path = join(target.incoming, name);
      const pieces = createReadStream(join(from, name), { highWaterMark: 2 ** 20 });
      pieces.on("data", ({ length }) => progress.add(length));
      await pipeline(pieces, createWriteStream(path, { mode: 0o600 }));
      await using file = await open(path, "r+");
      await file.sync();
    }
  }
  {
    using stack = new DisposableStack();
    const opened = serviceNames.map((service) => {
      const db = openAtRest(join(target.incoming, fileOf(service)));
      stack.defer(() => db.close());
      return [service, recordsIn(db)] as const;
    });
    await moveSequencesOn(new Map(opened));
  }
  target.complete();
}

/** Fills a place with an export. Resolves to how many records it has. */
export async function importFile(path: string, place: Place, options: FillOptions): Promise<number> {
  const source = await openLines(path, showChecking);
  const by = `the export of ${source.head.instant} (${source.head.id})`;
  return fill(source, place, { ...options, by, moveOn: true });
}

/** Fills a place with what another one has, which must not be in use. Resolves to how many records it has. */
export async function copy(from: Place, to: Place, options: FillOptions): Promise<number> {
  if ("directory" in from) {
    using taken = openDirectory(from.directory);
    const by = `a copy of ${from.directory}`;
    return await fill(await linesOf(recordsOf(taken.files)), to, { ...options, by, moveOn: false });
  }
  const databases = await openMongo(from);
  try {
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
  } finally {
    await databases.close();
  }
}
