/** `npm run data`: backups, exports and copies of all that the petstore stores. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { ConfigError } from "@petstore/runtime/environment";
import { Corrupt, NotWritable, StoreLocked, UnsupportedFormat, UnusableServer } from "@petstore/store/port";
import { CannotLook } from "../doctor/findings.ts";
import { copyFiles, exportMongo, makeBackup, verifyBackup } from "./backup.ts";
import { copy, importFile, restore } from "./fill.ts";
import { writeLines } from "./lines.ts";
import { openDirectory, openFiles, type Place, placeOf, Refused } from "./places.ts";

const help = `npm run data -- backup DIR     copies all that is stored, at one instant, while the petstore runs or not
npm run data -- verify DIR     looks at every byte of a backup
npm run data -- restore DIR    brings a backup back; the petstore must be stopped
npm run data -- export FILE    writes all records, at one instant, as lines of JSON
npm run data -- import FILE    fills a store with them, whatever its engine
npm run data -- copy --from STORE --to STORE    moves everything, also from one engine to the other
npm run data -- migrate indexes|status|up       builds the indexes of this version, says which records are of an older
                                                format, and has them rewritten while the petstore runs: docs/store.md

A STORE is a directory or a mongodb:// URI, by default what DATA_DIR or MONGODB_URI say. A store that is to be filled must be
empty and not in use. Import and copy go on where they stopped; a backup that was cut short is void.

options
  --store STORE    what is backed up, exported or filled, if it is not what the settings say
  --from, --to     what is copied, and what is filled: one of them may be what the settings say
  --replace        what a store holds gives way
  --help

It exits with 0 if that is done, 1 if it is refused, 2 if the command is wrong or something could not be looked at. Backups
and exports have names and keys in them: keep them where only you can read them.
`;

const options = {
  store: { type: "string" },
  from: { type: "string" },
  to: { type: "string" },
  replace: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const root = join(import.meta.dirname, "..");
const { env } = process;
const say = (text: string) => void process.stderr.write(`${text}\n`);

class Misused extends Error {}

async function run(): Promise<void> {
  const { values, positionals } = parse();
  if (values.help) return void process.stdout.write(help);
  const [verb, path = "", ...more] = positionals;
  if (verb === "migrate") {
    const { isStep, migrate } = await import("./migrate.ts");
    const isPlain =
      values.store === undefined && values.from === undefined && values.to === undefined && !values.replace;
    if (!isStep(path) || more.length > 0 || !isPlain) throw new Misused(help);
    return migrate(path, env, say);
  }
  const isCopy = verb === "copy";
  if (more.length > 0 || (path === "") !== isCopy || (values.from !== undefined || values.to !== undefined) !== isCopy)
    throw new Misused(help);
  const place = placeOf(values.store, env);
  const filling = { replace: values.replace, say };
  switch (verb) {
    case "backup": {
      const { instant, files } = await makeBackup(place, resolve(path), env);
      return say(
        `${path} has all that was answered before ${instant}, in ${files.length} files. Look at it: npm run data -- verify ${path}`,
      );
    }
    case "verify": {
      const { instant, counts } = await verifyBackup(resolve(path));
      return say(`${path} is whole: ${inWords(counts)}, as of ${instant}.`);
    }
    case "restore": {
      const { instant, counts } = await restore(resolve(path), place, filling);
      say(`${inWords(counts)} are back as of ${instant}. Ids go on a million above theirs.`);
      return examine(place);
    }
    case "export":
      return say(`${path} has ${inWords(await exportTo(resolve(path), place))}.`);
    case "import":
      return say(
        `${await importFile(resolve(path), place, filling)} records are there, each as in ${path}. Ids go on a million above theirs.`,
      );
    case "copy":
      return say(
        `${await copy(placeOf(values.from, env), placeOf(values.to, env), filling)} records are there, each as it was.`,
      );
    default:
      throw new Misused(help);
  }
}

function parse() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new Misused(`${(error as Error).message}\n\n${help}`);
  }
}

async function exportTo(path: string, place: Place): Promise<Record<string, number>> {
  if (existsSync(path)) throw new Refused(`${path} is there already: name another file.`);
  if ("uri" in place) return (await exportMongo(path, place)).counts;
  try {
    using files = openDirectory(place.directory);
    return await writeLines(path, files.records, new Date().toISOString());
  } catch (error) {
    if (!(error instanceof StoreLocked)) throw error;
  }
  const copied = mkdtempSync(join(dirname(path), ".export-"));
  const remove = () => rmSync(copied, { recursive: true, force: true });
  process.once("exit", remove);
  for (const [signal, code] of [["SIGINT", 130] as const, ["SIGTERM", 143] as const])
    process.once(signal, () => process.exit(code));
  try {
    const { instant } = await copyFiles(place.directory, copied, env);
    using files = openFiles(copied);
    return await writeLines(path, files.records, instant);
  } finally {
    remove();
  }
}

/** Has the doctor look at what was restored, and not at the surroundings: another petstore may have the ports. */
async function examine(place: Place): Promise<void> {
  const { MONGODB_URI: _, MONGODB_URI_FILE: __, ...others } = env;
  const where = "uri" in place ? { MONGODB_URI: place.uri.reveal() } : { DATA_DIR: place.directory };
  const options = { cwd: root, env: { ...others, ...where }, maxBuffer: 2 ** 26 };
  const run = promisify(execFile)("npm", ["run", "-s", "doctor", "--", "--json"], options);
  const { stdout, stderr, code = 0 } = await run.catch((error) => error);
  if ((code !== 0 && code !== 1) || stdout === "") return say(`The doctor could not look: ${stderr}`);
  const { findings } = JSON.parse(stdout) as {
    findings: { readonly invariant: string; readonly ids: readonly string[]; readonly detail: string }[];
  };
  const found = findings.filter(({ invariant }) => !invariant.startsWith("env-"));
  for (const { invariant, ids, detail } of found) say(`The doctor finds ${invariant} (${ids.join(", ")}): ${detail}`);
  if (found.length === 0) say("The doctor finds nothing.");
}

const inWords = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ") || "nothing";

/** What is there, or what was asked for, is against it. */
const refusals = [Refused, Corrupt, StoreLocked, UnsupportedFormat];
/** What can be said in one line to whoever runs the command. */
const foreseen = [...refusals, Misused, CannotLook, ConfigError, UnusableServer, NotWritable];

process.umask(0o077);
try {
  await run();
} catch (error) {
  const is = (kinds: readonly (abstract new (...args: never[]) => Error)[]) =>
    kinds.some((kind) => error instanceof kind);
  const known = is(foreseen) || (error instanceof Error && "code" in error);
  say(known ? (error as Error).message : ((error as Error).stack ?? `${error}`));
  process.exitCode = is(refusals) ? 1 : 2;
}
