/**
 * The proof that who asks at an admin port may read the files of the embedded store: the service's own user, or root. Who asks
 * has put a secret into DATA_DIR that belongs to that user, and that nobody else can read.
 */
import { randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { closeSync, fchownSync, lstatSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Its query goes with what is asked for. */
export interface Proof extends Disposable {
  readonly query: string;
}

/** Where a process that calls itself `by` puts its secret. */
export const secretFile = (dataDir: string, by: number): string => join(dataDir, `asking-${by}.secret`);
const SECRET_LENGTH = 64;

/** Puts a secret into DATA_DIR that only its owner can read, until it is disposed or the process exits. */
export function openProof(dataDir: string): Proof {
  const secret = randomBytes(SECRET_LENGTH / 2).toString("hex");
  // Others may write there, too: what they have put under the name is not written to.
  const by = randomInt(2 ** 47);
  const file = secretFile(dataDir, by);
  const opened = openSync(file, "wx", 0o600);
  const remove = () => rmSync(file, { force: true });
  const end = () => {
    process.off("exit", remove);
    remove();
  };
  process.once("exit", remove);
  try {
    writeFileSync(opened, secret);
    // Root asks services that run as another user.
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(join(dataDir, "pet.db"), { throwIfNoEntry: false }) ?? statSync(dataDir);
      fchownSync(opened, uid, gid);
    }
  } catch (error) {
    end();
    throw error;
  } finally {
    closeSync(opened);
  }
  return { query: `by=${by}&secret=${secret}`, [Symbol.dispose]: end };
}

/** Whether the query of a request has the secret that stands in DATA_DIR. */
export function isProven(dataDir: string, query: URLSearchParams): boolean {
  const secret = Buffer.from(query.get("secret") ?? "");
  try {
    const file = secretFile(dataDir, Number(query.get("by")));
    // Who may write into DATA_DIR as another user could not read the service's files.
    if (lstatSync(file).uid !== (process.getuid?.() ?? 0)) return false;
    const known = readFileSync(file);
    return known.length === SECRET_LENGTH && secret.length === SECRET_LENGTH && timingSafeEqual(secret, known);
  } catch {
    return false;
  }
}
