/**
 * `node scripts/make-secrets.ts DIRECTORY MONGODB_URI` makes the secrets of a petstore whose MongoDB requires
 * authentication, unless they exist already: DIRECTORY/internal/secret, by which its processes know each other, and
 * DIRECTORY/NAME/mongodb-uri with a user and a password of its own for each service, and for the admin that makes the
 * services' users. MONGODB_URI names the servers, without a user.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serviceNames } from "../processes/names.ts";

const [directory = "", servers = ""] = process.argv.slice(2);
if (!/^mongodb:\/\/[^@]+\?/.test(servers))
  throw new Error("Say where: node scripts/make-secrets.ts DIRECTORY mongodb://one,two,three/?replicaSet=petstore");

const random = () => randomBytes(32).toString("hex");

/** Writes the file atomically, for its owner alone to read. */
function make(folder: string, name: string, text: string): void {
  const path = join(directory, folder, name);
  if (existsSync(path)) return;
  mkdirSync(join(directory, folder), { recursive: true });
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, `${text}\n`, { mode: 0o400, flush: true });
  renameSync(`${path}.new`, path);
  console.log(`made ${path}`);
}

make("internal", "secret", random());
for (const user of ["admin", ...serviceNames])
  make(user, "mongodb-uri", `${servers.replace("//", `//${user}:${random()}@`)}&authSource=admin`);
