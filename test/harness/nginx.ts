/** The proxy of examples/proxy, in front of a petstore under test. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { portOf, processNames } from "../../processes/names.ts";
import { freePorts } from "./mongod.ts";
import type { Petstore } from "./petstore.ts";
import { isExecutable } from "./programs.ts";

const root = join(import.meta.dirname, "../..");
const program = process.env.NGINX ?? join(root, "node_modules/.cache/nginx/usr/sbin/nginx");
/** Where Debian puts it, beside the program. */
const streamModule = join(dirname(program), "../lib/nginx/modules/ngx_stream_module.so");

/** For `test.skipIf(...)`: the reporter mentions it, and with CI=true the run fails before it starts. */
export const nginxMissing = !isExecutable(program) || !existsSync(streamModule) || process.getuid?.() !== 0;

/** What the gateway of a petstore behind the proxy is started with. */
export const BEHIND_PROXY = { TRUST_PROXY: "127.0.0.1" };

export interface OpenProxy extends AsyncDisposable {
  readonly port: number;
  /** Takes connections from the proxy's own first half, whose first line names the caller (PROXY protocol). */
  readonly innerPort: number;
  /** The certificate of the authority that the proxy's comes from. */
  readonly ca: string;
}

/** Ends nginx at the end of the input, however this process ends. $0 is the program, $1 the configuration. */
const KEEPER = `trap '' INT TERM HUP
"$0" -c "$1" && { echo up; read -r end; "$0" -e /dev/null -c "$1" -s stop; }`;

/** What nginx keeps in files for a while. Where Debian's package is not installed, it has no place for them. */
const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/** Starts nginx with the configuration as it is but for ports and places of files. */
export async function startProxy(petstore: Petstore): Promise<OpenProxy> {
  const dir = await mkdtemp(join(tmpdir(), "proxy-"));
  const [port, innerPort] = (await freePorts(2)) as [number, number];
  await promisify(execFile)(process.execPath, [join(root, "scripts/certs.ts"), "--dir", dir]);
  await chmod(dir, 0o755); // the workers have another user
  const config = join(dir, "nginx.conf");
  await writeFile(
    config,
    replaced(await readFile(join(root, "examples/proxy/nginx.conf"), "utf8"), {
      "include /etc/nginx/modules-enabled/*.conf": `load_module ${streamModule}`,
      "/run/nginx.pid": join(dir, "nginx.pid"),
      "/var/log/nginx/error.log": join(dir, "error.log"),
      "../../certs/": `${dir}/`,
      "\nhttp {": `\nhttp { ${TEMPORARY.map((kind) => `${kind}_temp_path ${join(dir, kind)};`).join(" ")}`,
      "8443": `${port}`,
      "8444": `${innerPort}`,
      ...Object.fromEntries(
        processNames.map((name) => [`127.0.0.1:${portOf(name, 8080)};`, `${new URL(petstore.url(name)).host};`]),
      ),
    }),
  );
  const keeper = spawn("sh", ["-c", KEEPER, program, config], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(keeper, "exit");
  const stop = async () => {
    keeper.stdin.end();
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  await Promise.race([once(keeper.stdout, "data"), ended]);
  if (keeper.exitCode !== null) {
    await stop();
    throw new Error("nginx did not start: it says why above.");
  }
  return { port, innerPort, ca: await readFile(join(dir, "ca.pem"), "utf8"), [Symbol.asyncDispose]: stop };
}

/** Each text once or more, in one pass, for what is put in may look like what is to be replaced. */
function replaced(text: string, by: Readonly<Record<string, string>>): string {
  const missing = Object.keys(by).filter((shown) => !text.includes(shown));
  if (missing.length > 0) throw new Error(`examples/proxy/nginx.conf has no ${missing.join(", ")} any more.`);
  const any = new RegExp(Object.keys(by).map(RegExp.escape).join("|"), "g");
  return text.replace(any, (shown) => by[shown] ?? shown);
}
