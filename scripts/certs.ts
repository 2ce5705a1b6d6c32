/**
 * `npm run certs`: certificates for trying TLS on this machine, issued by an authority that is made for them and whose
 * key is not kept. Existing files are replaced only with `--force`.
 */
import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PEER_NAME } from "../processes/credentials.ts";
import { createAuthority } from "./certificates.ts";

const USAGE = `npm run certs [-- --names shop.test,10.0.0.7] [--dir certs] [--force]
  --names   what callers call this machine, besides localhost, 127.0.0.1 and ::1
  --force   in place of those that are there; running processes take them within a second`;

const DAY_MS = 86_400_000;
const DAYS = 365;
/** The certificates are valid from this long ago, because the clock of another machine that uses them may be behind. */
const EARLIER_MS = 3_600_000;

const options = {
  names: { type: "string", default: "" },
  dir: { type: "string", default: "certs" },
  force: { type: "boolean", default: false },
} as const;

try {
  await run();
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

async function run(): Promise<void> {
  const { names, dir, force } = parse();
  const at = (file: string) => join(dir, file);
  const files = [at("ca.pem"), at("cert.pem"), at("key.pem")];
  const [ca, cert, key] = files as [string, string, string];
  for (const file of files)
    if (!force && existsSync(file)) throw new Error(`${file} is there already. \`--force\` makes others.`);
  const validity = { notBefore: new Date(Date.now() - EARLIER_MS), notAfter: new Date(Date.now() + DAYS * DAY_MS) };
  const authority = await createAuthority("petstore development", validity);
  const pair = await authority.issue({ names: [...names, PEER_NAME], ...validity });
  await mkdir(dir, { recursive: true });
  await write(key, pair.key, 0o600);
  await write(cert, pair.cert, 0o644);
  await write(ca, authority.cert, 0o644);
  console.log(`${cert} and ${key} are for ${names.join(", ")}, until ${validity.notAfter.toISOString().slice(0, 10)};
${ca} is the authority that they come from.

Start with them:
  TLS_CERT=${cert} TLS_KEY=${key} INTERNAL_TLS_CA=${ca} npm start

Then try:
  curl --cacert ${ca} https://127.0.0.1:8080/pets`);
}

function parse() {
  try {
    const { names, ...values } = parseArgs({ options }).values;
    const given = names.split(",").map((name) => name.trim());
    return { ...values, names: ["localhost", "127.0.0.1", "::1", ...given.filter((name) => name !== "")] };
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${USAGE}`);
  }
}

/** Replaces the file atomically. */
async function write(file: string, text: string, mode: number): Promise<void> {
  const next = `${file}.new`;
  await writeFile(next, text, { mode, flag: "wx" });
  await rename(next, file);
}
