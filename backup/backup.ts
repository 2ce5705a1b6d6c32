/** Backups: what makes them, looks whether they are whole, and brings them back. */
import { createHash, randomUUID } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Environment } from "@petstore/runtime/environment";
import * as embedded from "@petstore/store/at-rest";
import { StoreLocked } from "@petstore/store/port";
import { CannotLook } from "../doctor/findings.ts";
import { serviceNames } from "../processes/names.ts";
import { type LinesFile, openLines, writeLines } from "./lines.ts";
import { copyLive } from "./live.ts";
import {
  type AllRecords,
  fileOf,
  type MongoPlace,
  type OpenFiles,
  openDirectory,
  openFiles,
  openMongo,
  type Place,
  Refused,
  sync,
} from "./places.ts";
import { type Progress, showProgress } from "./progress.ts";

/** Goes up when a backup looks so different that another version could not read it. */
const FORMAT = 1;
const MANIFEST = "manifest.json";
/** The file of a backup of MongoDB. */
const LINES = "records.jsonl";

export interface Manifest {
  readonly petstore: "backup";
  readonly format: number;
  readonly id: string;
  readonly engine: "embedded" | "mongodb";
  /** Of what the engine stores. */
  readonly engineFormat: number;
  /** What was answered before it is in the backup. */
  readonly instant: string;
  /** How many records there are, by service and collection. */
  readonly counts: Readonly<Record<string, number>>;
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
  /** Of all that stands above. */
  readonly sha256: string;
}

/** Makes a backup of a place in a new directory. It is one when its manifest is there, which is written last. */
export async function makeBackup(place: Place, directory: string, environment: Environment): Promise<Manifest> {
  if (existsSync(directory) && readdirSync(directory).length > 0)
    throw new Refused(`${directory} holds something already: name a directory that is new or empty.`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  try {
    return await writeBackup(place, directory, environment);
  } catch (error) {
    for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
    throw error;
  }
}

async function writeBackup(place: Place, directory: string, environment: Environment): Promise<Manifest> {
  const made = await ("directory" in place
    ? copyFiles(place.directory, directory, environment)
    : readMongo(place, directory));
  const files = [];
  {
    const names = readdirSync(directory).sort();
    const sizes = names.map((name) => statSync(join(directory, name)).size);
    using progress = showProgress("Adding up files", sizes, "bytes");
    for (const name of names) {
      await sync(join(directory, name));
      files.push({ name, ...(await sumOf(join(directory, name), progress)) });
    }
  }
  const told = { petstore: "backup", format: FORMAT, id: randomUUID(), ...made, files } as const;
  const manifest: Manifest = { ...told, sha256: hashOf(told) };
  const path = join(directory, MANIFEST);
  writeFileSync(`${path}.part`, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  await sync(`${path}.part`);
  await rename(`${path}.part`, path);
  await sync(directory);
  return manifest;
}

type Made = Pick<Manifest, "engine" | "engineFormat" | "instant" | "counts">;

/** Copies the files of a directory as they are at one instant, whether a petstore has them open or not. */
export async function copyFiles(from: string, to: string, environment: Environment): Promise<Made> {
  const instant = (await copyAtRest(from, to)) ?? (await copyLive(from, to, environment));
  for (const service of serviceNames) embedded.settle(join(to, fileOf(service)));
  await embedded.copyIdentity(from, to);
  using copied = openFiles(to);
  // A process that was started meanwhile is noticed here, too.
  for (const [service, db] of copied.files) embedded.checkTogether(join(to, fileOf(service)), db);
  const counts = await countsOf(copied.records);
  return { engine: "embedded", engineFormat: embedded.FORMAT, instant, counts };
}

/** Undefined if a petstore has the files. */
async function copyAtRest(from: string, to: string): Promise<string | undefined> {
  let taken: OpenFiles;
  try {
    taken = openDirectory(from);
  } catch (error) {
    if (error instanceof StoreLocked) return undefined;
    throw error;
  }
  using _ = taken;
  const sizes = serviceNames.map((service) => statSync(join(from, fileOf(service))).size);
  using progress = showProgress("Copying files", sizes, "bytes");
  for (const [i, [service, db]] of [...taken.files].entries()) {
    let before = 0;
    const size = sizes[i] ?? 0;
    await embedded.copyFile(db, join(to, fileOf(service)), (part) => {
      progress.add((part - before) * size);
      before = part;
    });
  }
  return new Date().toISOString();
}

async function readMongo(place: MongoPlace, to: string): Promise<Made> {
  const { FORMAT: engineFormat } = await import("@petstore/store/databases");
  return { engine: "mongodb", engineFormat, ...(await exportMongo(join(to, LINES), place)) };
}

export async function exportMongo(path: string, place: MongoPlace) {
  await using databases = await openMongo(place);
  await databases.checkFormats();
  const at = await databases.now();
  const instant = new Date(at.getHighBits() * 1000).toISOString();
  const all: AllRecords = new Map(serviceNames.map((service) => [service, databases.records(service, at)]));
  return { instant, counts: await writeLines(path, all, instant) };
}

async function countsOf(all: AllRecords): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [service, records] of all)
    for (const name of await records.collections()) counts[`${service}/${name}`] = await records.count(name);
  return counts;
}

/** Looks at every byte of a backup, and opens that of MongoDB. Throws `Refused` if it is void, damaged, mixed or newer. */
export async function verifyBackup(directory: string): Promise<Manifest & { readonly lines?: LinesFile }> {
  const manifest = readManifest(directory);
  const { files, engine, engineFormat, counts } = manifest;
  const names = new Set([MANIFEST, ...files.map(({ name }) => name)]);
  const foreign = readdirSync(directory).find((name) => !names.has(name));
  if (foreign !== undefined) throw new Refused(`${join(directory, foreign)} is not a part of this backup: remove it.`);
  {
    const sizes = files.map(({ bytes }) => bytes);
    using progress = showProgress("Checking files", sizes, "bytes");
    for (const { name, bytes, sha256 } of files) {
      const path = join(directory, basename(name));
      if (!existsSync(path)) throw new Refused(`${path} is missing. ${ANOTHER}`);
      const found = await sumOf(path, progress);
      if (found.bytes !== bytes || found.sha256 !== sha256)
        throw new Refused(
          `${path} is not the file that was backed up: it is damaged, or of another backup. ${ANOTHER}`,
        );
    }
  }
  if (engine === "mongodb") {
    const { FORMAT: known } = await import("@petstore/store/databases");
    checkFormat(directory, engineFormat, known);
    const path = join(directory, LINES);
    return { ...manifest, lines: await openLines(path) };
  }
  checkFormat(directory, engineFormat, embedded.FORMAT);
  using copied = openFiles(directory);
  if (JSON.stringify(await countsOf(copied.records)) !== JSON.stringify(counts))
    throw new Refused(`The files in ${directory} have not the records that ${MANIFEST} tells of. ${ANOTHER}`);
  return manifest;
}

const ANOTHER = "Take another backup.";

function readManifest(directory: string): Manifest {
  const path = join(directory, MANIFEST);
  if (!existsSync(directory)) throw new CannotLook(`There is no ${directory}.`);
  if (!existsSync(path))
    throw new Refused(`${directory} has no ${MANIFEST}: it is no backup, or was cut short and is void. ${ANOTHER}`);
  let manifest: Manifest | undefined;
  try {
    manifest = JSON.parse(readFileSync(path, "utf8"));
  } catch {} // reported below
  const { sha256, ...told } = manifest ?? {};
  if (manifest?.petstore !== "backup" || hashOf(told) !== sha256) throw new Refused(`${path} is damaged. ${ANOTHER}`);
  checkFormat(directory, manifest.format, FORMAT);
  return manifest;
}

function checkFormat(directory: string, format: number, known: number): void {
  if (format === known) return;
  const other = format > known ? "a newer petstore: upgrade this one" : "an older petstore: restore it with that";
  throw new Refused(`${directory} was made by ${other}.`);
}

const hashOf = (told: object): string => createHash("sha256").update(JSON.stringify(told)).digest("hex");

async function sumOf(path: string, progress: Progress): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  let bytes = 0;
  await pipeline(createReadStream(path, { highWaterMark: 2 ** 20 }), async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) {
      hash.update(piece);
      bytes += piece.length;
      progress.add(piece.length);
    }
  });
  return { bytes, sha256: hash.digest("hex") };
}
