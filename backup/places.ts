/** Where stores are: a directory or MongoDB, and how to open what is there. */
import { createReadStream, createWriteStream, existsSync, lchownSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { pipeline } from "node:stream/promises";
import {
  ConfigError,
  type Environment,
  mongodbUri,
  path,
  readEnvironment,
  type Secret,
} from "@petstore/runtime/environment";
import { checkTogether, IDENTITY, openAtRest, recordsIn } from "@petstore/store/at-rest";
import type { Databases } from "@petstore/store/databases";
import { takeDirectory } from "@petstore/store/directory";
import { StoreLocked } from "@petstore/store/port";
import type { Records } from "@petstore/store/rows";
import { storeSettings } from "../processes/config.ts";
import { type ServiceName, serviceNames } from "../processes/names.ts";

export const fileOf = (service: ServiceName): string => `${service}.db`;

export type Place = { readonly directory: string } | MongoPlace;
export interface MongoPlace {
  readonly uri: Secret;
}

/** The command can't be carried out, for the reason in the message. */
export class Refused extends Error {}

/** The place that the settings name, or the one that is `given` instead of them. Throws `ConfigError`. */
export function placeOf(given: string | undefined, environment: Environment): Place {
  if (given === undefined) {
    const { MONGODB_URI, DATA_DIR } = readEnvironment(environment, storeSettings);
    return MONGODB_URI ? { uri: MONGODB_URI } : { directory: resolve(DATA_DIR) };
  }
  const uri = mongodbUri.read(given);
  if (uri) return { uri };
  const directory = path.read(given);
  if (directory !== undefined) return { directory: resolve(directory) };
  throw new ConfigError([`A store is a directory, or ${mongodbUri.description}.`]);
}

export async function openMongo({ uri }: MongoPlace): Promise<Databases> {
  const { openDatabases } = await import("@petstore/store/databases");
  return openDatabases(uri.reveal(), serviceNames);
}

export const holdsData = (directory: string): boolean =>
  [...serviceNames.map(fileOf), IDENTITY].some((name) => existsSync(join(directory, name)));

export type AllRecords = ReadonlyMap<ServiceName, Records>;

export interface OpenFiles extends Disposable {
  readonly files: ReadonlyMap<ServiceName, DatabaseSync>;
  readonly records: AllRecords;
}

export function openFiles(directory: string, openFile = openAtRest): OpenFiles {
  using stack = new DisposableStack();
  const files = new Map(
    serviceNames.map((service) => [service, stack.use(openFile(join(directory, fileOf(service))))]),
  );
  const records = new Map([...files].map(([service, db]) => [service, recordsIn(db)]));
  return Object.assign(stack.move(), { files, records });
}

/** Takes a directory, in which root leaves nothing that its owner could not take. */
function take(directory: string): Disposable {
  const taken = takeDirectory(directory, "npm run data");
  for (const name of ["launcher.lock", "launcher.pid"]) ownAs(directory, join(directory, name));
  return taken;
}

/** Gives a file to the owner of the directory: root may have made it. */
export function ownAs(directory: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(directory);
  lchownSync(path, uid, gid);
}

/**
 * Opens the files of a directory, which no petstore can use until they are closed. Throws `StoreLocked` if one uses them, and
 * `Corrupt` if they don't belong together.
 */
export function openDirectory(directory: string): OpenFiles {
  if (!holdsData(directory)) throw new Refused(`There is no data of a petstore in ${directory}.`);
  using stack = new DisposableStack();
  stack.use(take(directory));
  const { files, records } = stack.use(openFiles(directory));
  for (const [service, db] of files) checkTogether(join(directory, fileOf(service)), db);
  return Object.assign(stack.move(), { files, records });
}

/** Takes a directory that is about to be written. Throws `StoreLocked` if a petstore uses it. */
export function takeUnused(directory: string): Disposable {
  using stack = new DisposableStack();
  stack.use(take(directory));
  for (const service of serviceNames) {
    const path = join(directory, fileOf(service));
    try {
      if (existsSync(path)) openAtRest(path).close();
    } catch (error) {
      if (error instanceof StoreLocked) throw error; // what is damaged may be replaced
    }
  }
  return stack.move();
}

/** Copies a file, or its first `size` bytes. */
export async function copyFile(
  from: string,
  to: string,
  copied: (bytes: number) => void,
  size?: number,
): Promise<void> {
  if (size === 0) return;
  const end = size === undefined ? {} : { end: size - 1 };
  const pieces = createReadStream(from, { highWaterMark: 2 ** 20, ...end });
  pieces.on("data", ({ length }) => copied(length));
  await pipeline(pieces, createWriteStream(to, { mode: 0o600 }));
}

/** Brings a file or the names in a directory to the disk. */
export async function sync(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}
