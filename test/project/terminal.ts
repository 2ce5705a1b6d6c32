/** Runs the steps of a page as its reader would, in a directory of its own: nothing is written into the checkout. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processNames } from "../../processes/names.ts";
import { freePorts } from "../harness/instances.ts";
import { endOfShown, filledIn, isAsShown, lastingOf, type Step } from "./shown-commands.ts";

const ROOT = join(import.meta.dirname, "../..");
/** The first port of the petstore in pages, and of its admin ports 100 above. Tests use as many ports from another one on. */
const FIRST_PORT = 8080;
const SETS = 3;
/** How often a read is repeated until it shows what is expected, every tenth of a second. */
const ATTEMPTS = 1000;
const READY = "…The petstore is ready…";

export interface Terminal extends AsyncDisposable {
  /**
   * Runs a step. Resolves with its output, or with the shown output if they match. A lasting command is awaited until it has
   * printed what is shown; it first stops the previous one of its kind, as Ctrl-C does.
   * @throws Error when a command without shown output fails, or a lasting one ends too early.
   */
  run(step: Step): Promise<string>;
}

/** Replaced, because it would remove the modules that these tests run on. */
const DONE = { "npm ci": "true" };

/** `meant` replaces some words of the commands, such as the address of a database. */
export async function openTerminal(meant: Readonly<Record<string, string>> = {}): Promise<Terminal> {
  const dir = await mkdtemp(join(tmpdir(), "petstore-page-"));
  // The links let npm find what it runs. What it writes, such as data/, is beside them.
  for (const name of globSync("{*,.npmrc}", { cwd: ROOT }))
    if (!["data", "certs"].includes(name)) await symlink(join(ROOT, name), join(dir, name));
  const exported = join(dir, ".exported");
  await writeFile(exported, "");
  const base = await freePorts(SETS);
  const env = { ...process.env, PORT_BASE: `${base}`, PETSTORE_URL: `http://127.0.0.1:${base}` };
  const lasting = new Map<string, ReturnType<typeof start>>();
  let printed = "";

  const here = (command: string) =>
    Object.entries({ ...DONE, ...meant })
      .reduce((text, [word, meaning]) => text.replaceAll(word, meaning), command)
      .replace(/\b8[01][89]\d\b/g, (port) => `${Number(port) - FIRST_PORT + base}`);
  const asOnPages = (text: string) =>
    text
      .replace(/(?<=127\.0\.0\.1:)\d{5}\b/g, (port) => {
        const place = Number(port) - base;
        return place >= 0 && place < 200 && place % 100 < SETS * processNames.length ? `${FIRST_PORT + place}` : port;
      })
      .replace(/[ \r]+$/gm, "");

  function start(script: string) {
    const child = spawn("bash", ["-c", `exec 2>&1; set -a; source ${exported}; ${here(filledIn(script, printed))}`], {
      cwd: dir,
      env,
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    let isClosed = false;
    const closed = once(child, "close").finally(() => {
      isClosed = true;
    });
    let text = "";
    let read = 0;
    child.stdout.setEncoding("utf8").on("data", (more) => {
      text += more;
    });
    return {
      /** Resolves to its exit code, when it and all that it started have ended. */
      code: () => closed.then(([code]) => code as number | null),
      all: () => asOnPages(text).trimEnd(),
      async until(shown: string): Promise<string> {
        for (;;) {
          const unread = asOnPages(text).slice(read);
          const end = endOfShown(unread, shown);
          if (end !== undefined) {
            read += end;
            return shown;
          }
          if (child.exitCode !== null || child.signalCode !== null) return unread;
          await Promise.race([once(child.stdout, "data"), closed]);
        }
      },
      /**
       * Stops it as Ctrl-C does. If only processes in the background are left, it terminates these, which Ctrl-C does not
       * reach.
       */
      async stop() {
        const isInFront = child.exitCode === null && child.signalCode === null;
        try {
          if (!isClosed) process.kill(-(child.pid as number), isInFront ? "SIGINT" : "SIGTERM");
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // it has just ended
        }
        await closed;
      },
    };
  }

  async function toItsEnd(command: string, prints: string | undefined): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const running = start(`${command}\ncode=$?; export -p >${exported}; exit $code`);
      const code = await running.code();
      const output = running.all();
      printed += `${output}\n`;
      if (prints === undefined && code !== 0) throw new Error(`${command}\nended with ${code}:\n${output}`);
      if (prints === undefined || isAsShown(output, prints)) return prints ?? output;
      // Consequences of a change, such as the status of a pet, may appear a moment later.
      const isRead = /^curl (?!.*(-X|-d|--json))/.test(command);
      if (!isRead || attempt === ATTEMPTS) return output;
      await sleep(100);
    }
  }

  return {
    async run(step) {
      if (step.kind === "file") {
        await writeFile(join(dir, step.name), step.content);
        return "";
      }
      if (step.kind === "later") return (await [...lasting.values()].at(-1)?.until(step.prints)) ?? "";
      const kind = lastingOf(step.command);
      if (kind === undefined) return await toItsEnd(step.command, step.prints);
      await lasting.get(kind)?.stop();
      lasting.delete(kind);
      const running = start(step.command);
      lasting.set(kind, running);
      const awaited = step.prints || (kind === "npm start" ? READY : "");
      const output = await running.until(awaited);
      printed += `${running.all()}\n`;
      if (output === awaited) return step.prints ?? output;
      throw new Error(`${step.command}\nended, and printed:\n${output}`);
    },
    async [Symbol.asyncDispose]() {
      for (const running of lasting.values()) await running.stop();
      await rm(dir, { recursive: true });
    },
  };
}
