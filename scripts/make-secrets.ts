/**
 * `node scripts/make-secrets.ts DIRECTORY MONGODB_URI` makes the secrets of a petstore whose MongoDB asks who calls, unless
 * they are there already: DIRECTORY/internal/secret, by which its processes know each other, and for each service, and
 * for the admin who makes the services' users, DIRECTORY/NAME/mongodb-uri with a user and a password of its own.
 * MONGODB_URI says where the servers are, without a user.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isServiceName, processNames } from "../config.ts";

const [directory = "", servers = ""] = process.argv.slice(2);
if (!/^mongodb:\/\/[^@]+\?/.test(servers))
  throw new Error("Say where: node scripts/make-secrets.ts DIRECTORY mongodb://one,two,three/?replicaSet=petstore");

const random = () => randomBytes(32).toString("hex");

/** A file is whole or not there. Nobody but its owner can read it. */
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
for (const user of ["admin", ...processNames.filter(isServiceName)])
  make(user, "mongodb-uri", `${servers.replace("//", `//${user}:${random()}@`)}&authSource=admin`);
