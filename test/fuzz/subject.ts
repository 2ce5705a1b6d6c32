/** The petstore under test: real processes that require credentials, and what can be seen of them from outside. */
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKey, formatKeyFile, noKeys } from "@petstore/rpc/auth/key-file";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { PEER_NAME } from "../../processes/credentials.ts";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { createAuthority } from "../../scripts/certificates.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { SECRET } from "../harness/processes.ts";
import { Find, kindOf } from "./find.ts";
import { createNeighbour, type Neighbour } from "./neighbour.ts";
import { relayTo } from "./relay.ts";

/** Secrets that no log, error or answer may contain. In cases "{key}", "{token}" and "{secret}" stand for them. */
export interface Credentials {
  readonly key: string;
  readonly token: string;
  readonly secret: string;
}

export interface Subject extends AsyncDisposable {
  readonly credentials: Credentials;
  port(name: ProcessName): number;
  readonly neighbour: Neighbour;
  /** Processor time that the main threads have used so far, in nanoseconds; undefined if the system does not tell. */
  cpu(): number | undefined;
  /** Number of open files and sockets of each process; undefined if the system does not tell. */
  open(): ReadonlyMap<ProcessName, number> | undefined;
  /** Resident memory of the largest process, in bytes; undefined if the system does not tell. */
  memory(): number | undefined;
  /**
   * Throws a Find for a process that has ended, which is then restarted, and for a suspicious line in the log since the last
   * call.
   */
  look(): Promise<void>;
}

/** Limit of the heap. A leak ends the process at this size. */
const HEAP_MB = 256;

/** With `tls` all ports take TLS alone, and the targets' connections go through relays. */
export async function startSubject({ tls = false } = {}): Promise<Subject> {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "petstore-fuzz-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const { env, credentials } = await authentication(dir);
  const certificates = tls ? await issue(dir) : undefined;
  const petstore = stack.use(
    await startPetstore({
      replicas: 1,
      env: {
        ...env,
        ...certificates?.env,
        LOG_LEVEL: "warn",
        NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
        // So that the code for these headers is tested, too.
        TRUST_PROXY: "127.0.0.1",
        RATE_LIMIT: "1000000/s",
        CORS_ORIGINS: "https://shop.example",
      },
    }),
  );
  const ports = new Map<ProcessName, number>();
  for (const name of processNames) {
    const own = Number(new URL(petstore.url(name)).port);
    ports.set(name, certificates ? stack.use(await relayTo(own, certificates.ca)).port : own);
  }
  const port = (name: ProcessName) => ports.get(name) as number;
  const neighbour = stack.use(createNeighbour(port, credentials.key));
  await neighbour.furnish();
  const look = createLook(petstore, Object.values(credentials));
  const owned = stack.move();
  return {
    credentials,
    port,
    neighbour,
    cpu: () => onLinux(() => sum(processNames.map((name) => Number(proc(petstore, name, "schedstat").split(" ")[0])))),
    open: () =>
      onLinux(() => new Map(processNames.map((name) => [name, readdirSync(`/proc/${petstore.pid(name)}/fd`).length]))),
    memory: () => onLinux(() => Math.max(...processNames.map((name) => residentOf(proc(petstore, name, "status"))))),
    look,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Issues certificates of an authority that exists for this run only. */
async function issue(dir: string) {
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
  const authority = await createAuthority("fuzz", validity);
  const { cert, key } = await authority.issue({ names: ["127.0.0.1", PEER_NAME], ...validity });
  const file = async (name: string, content: string) => {
    await writeFile(join(dir, name), content);
    return join(dir, name);
  };
  const ca = await file("ca.pem", authority.cert);
  const env = { TLS_CERT: await file("cert.pem", cert), TLS_KEY: await file("key.pem", key), INTERNAL_TLS_CA: ca };
  return { env, ca: authority.cert };
}

async function authentication(dir: string) {
  const { content, key } = createKey(noKeys, { name: "fuzz", scopes: ["*"], expires: undefined });
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "1", alg: "ES256", use: "sig" };
  const [keys, jwks] = [join(dir, "keys.json"), join(dir, "jwks.json")];
  await writeFile(keys, formatKeyFile(content));
  await writeFile(jwks, JSON.stringify({ keys: [jwk] }));
  const token = await new SignJWT({ scope: "*" })
    .setProtectedHeader({ alg: "ES256", kid: "1", typ: "at+jwt" })
    .setIssuer("https://login.example")
    .setAudience("petstore")
    .setSubject("fuzz")
    .setExpirationTime("1d")
    .sign(privateKey);
  const env = {
    AUTH_MODE: "keys,jwt",
    API_KEYS_FILE: keys,
    JWT_ISSUER: "https://login.example",
    JWT_AUDIENCE: "petstore",
    JWT_JWKS: jwks,
  };
  return { env, credentials: { key, token, secret: SECRET } };
}

/** Levels of log lines about requests and their errors. */
const HARMLESS = new Set(["trace", "debug", "info", "warn"]);

function createLook(petstore: Petstore, secrets: readonly string[]): () => Promise<void> {
  const read = new Map<ProcessName, number>();
  const pids = new Map(processNames.map((name) => [name, petstore.pid(name)]));

  /** Complete lines since the last call. */
  function newLines(name: ProcessName): string[] {
    const all = petstore.logs(name);
    const from = read.get(name) ?? 0;
    const end = all.lastIndexOf("\n") + 1;
    read.set(name, Math.max(from, end));
    return all.slice(from, end).split("\n").filter(Boolean);
  }

  return async () => {
    const finds: Find[] = [];
    for (const name of processNames) {
      const lines = newLines(name);
      if (!petstore.isRunning(name) || petstore.pid(name) !== pids.get(name)) {
        finds.unshift(new Find(`${name} ended`, lines.slice(-3).join("\n")));
        if (!petstore.isRunning(name)) await petstore.start(name);
        pids.set(name, petstore.pid(name));
        continue;
      }
      for (const line of lines) {
        const problem = problemIn(line, secrets);
        if (problem !== undefined) finds.push(new Find(`${name} logs ${problem}`, line.slice(0, 2000)));
      }
    }
    const [first] = finds;
    if (first) throw first;
  };
}

function problemIn(line: string, secrets: readonly string[]): string | undefined {
  if (secrets.some((secret) => line.includes(secret))) return "a secret";
  const record = ((): { level?: string; err?: { type?: string; stack?: string } } | undefined => {
    try {
      return JSON.parse(line);
    } catch {
      return undefined;
    }
  })();
  // Such as Node's warning of too many listeners.
  if (!record) return "what is no record";
  const kind = kindOf({ name: record.err?.type, stack: record.err?.stack });
  if (!HARMLESS.has(record.level ?? "")) return `at level ${record.level}: ${kind}`;
  return record.err?.stack === undefined ? undefined : "a stack";
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
const residentOf = (status: string): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
const proc = (petstore: Petstore, name: ProcessName, file: string) =>
  readFileSync(`/proc/${petstore.pid(name)}/${file}`, "utf8");

/** Undefined on other systems, and for a process that is just ending. */
function onLinux<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
