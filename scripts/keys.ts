/**
 * `npm run keys -- create | list | rotate | revoke`: the API keys in the file that API_KEYS_FILE names. Running processes
 * notice a change within a second. A key is printed once, when it is made: the file holds only a hash of it.
 */
import type { Stats } from "node:fs";
import { type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import { parseArgs } from "node:util";
import { getOption } from "@bufbuild/protobuf";
import {
  createKey,
  formatKeyFile,
  type Issued,
  type KeyFile,
  KeyFileError,
  noKeys,
  parseKeyFile,
  revokeKey,
  rotateKey,
} from "@petstore/rpc/auth/key-file";
import { ConfigError, duration, optional, path as pathKind, readEnvironment } from "@petstore/runtime/environment";
import { rate } from "@petstore/runtime/rate";
import { readText } from "@petstore/runtime/watched-files";
import { scope } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { publicServices } from "../gateway/services.ts";

const USAGE = `npm run keys -- create --name ci --scopes pets:read,orders:write [--expires 90d] [--rate 600/min]
npm run keys -- list
npm run keys -- rotate <id>     another secret for the same caller; the old one ends at once
npm run keys -- revoke <id>
The keys are in the file that API_KEYS_FILE names.`;

/** The command can't be carried out, for the reason in the message. */
class Refused extends Error {}

const known = [
  ...new Set(publicServices.flatMap(({ desc }) => desc.methods.map((method) => getOption(method, scope)))),
].sort();
const allKnown = ["*", ...new Set(known.map((one) => one.replace(/:.*/, ":*"))), ...known];

const options = {
  name: { type: "string" },
  scopes: { type: "string" },
  expires: { type: "string" },
  rate: { type: "string" },
  help: { type: "boolean" },
} as const;

try {
  await run(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refused || error instanceof KeyFileError || error instanceof ConfigError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

async function run(args: string[]): Promise<void> {
  const { values, command, id } = parse(args);
  if (values.help) return console.log(USAGE);
  const { API_KEYS_FILE: path } = readEnvironment(process.env, { API_KEYS_FILE: optional(pathKind) });
  if (!path) throw new Refused("API_KEYS_FILE is not set: it must be the path of the file of keys, such as keys.json.");
  if (command === "list") return list(await read(path));
  if (command === "create") return issue(path, (content) => createKey(content, newKey(values)));
  if (id === undefined) throw new Refused(USAGE);
  if (command === "rotate") return issue(path, (content) => rotateKey(content, id));
  if (command === "revoke") return void (await change(path, (content) => ({ content: revokeKey(content, id) })));
  throw new Refused(USAGE);
}

function parse(args: string[]) {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const [command, id, ...more] = positionals;
    if (more.length > 0) throw new Refused(USAGE);
    return { values, command, id };
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(`${(error as Error).message}\n${USAGE}`);
  }
}

function newKey({ name, scopes, expires, rate: own }: ReturnType<typeof parse>["values"]) {
  if (!name || !scopes) throw new Refused(USAGE);
  const asked = scopes.split(",").map((one) => one.trim());
  const unknown = asked.find((one) => !allKnown.includes(one));
  if (unknown !== undefined) throw new Refused(`There is no scope "${unknown}". There are: ${allKnown.join(", ")}.`);
  const lifetime = duration("1s", "3650d");
  const ms = expires === undefined ? undefined : lifetime.read(expires);
  if (expires !== undefined && ms === undefined) throw new Refused(`--expires must be ${lifetime.description}.`);
  if (own !== undefined && !rate.read(own)) throw new Refused(`--rate must be ${rate.description}.`);
  return { name, scopes: asked, rate: own, expires: ms === undefined ? undefined : new Date(Date.now() + ms) };
}

function list({ keys }: KeyFile): void {
  for (const { id, name, scopes, rate, expires } of keys)
    console.log([id, name, scopes.join(","), expires ?? "no end", ...(rate === undefined ? [] : [rate])].join("\t"));
}

async function issue(path: string, make: (content: KeyFile) => Issued): Promise<void> {
  const { id, key } = await change(path, make);
  console.error(`The key ${id}, which is shown this once:`);
  console.log(key);
}

async function read(path: string): Promise<KeyFile> {
  try {
    return parseKeyFile(await readText(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return noKeys;
    throw error instanceof KeyFileError ? new Refused(`${path} can't be used: ${error.message}.`) : error;
  }
}

/**
 * Replaces the file atomically, with the owner and mode of the old one, by which processes may read it. While the new
 * file is written no other command can change the old one.
 */
async function change<T extends { content: KeyFile }>(named: string, make: (content: KeyFile) => T): Promise<T> {
  const path = await realpath(named).catch(() => named); // a symbolic link stays one
  const next = `${path}.new`;
  const file = await open(next, "wx", 0o600).catch((error) => {
    if (error.code !== "EEXIST") throw new Refused(`${next} can't be written: ${error.message}`);
    throw new Refused(`Another command is changing ${path}, or was cut off: if none is, remove ${next}.`);
  });
  try {
    const made = make(await read(path));
    const old = await stat(path).catch(() => undefined);
    if (old) await keepAccess(file, old, path);
    await file.writeFile(formatKeyFile(made.content));
    await file.sync();
    await rename(next, path);
    return made;
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

async function keepAccess(file: FileHandle, { uid, gid, mode }: Stats, path: string): Promise<void> {
  try {
    const own = await file.stat();
    if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid);
    await file.chmod(mode & 0o777);
  } catch (error) {
    throw new Refused(
      `${path} belongs to user ${uid} and group ${gid}, to whom it has to stay. Who can't give it to them can't change it: ${(error as Error).message}`,
    );
  }
}
