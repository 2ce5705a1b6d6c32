import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { type Run, run, sendAtOnce } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";

const script = join(import.meta.dirname, "fixtures/launch.ts");
const timeout = 60_000;

const dataDir = await mkdtemp(join(tmpdir(), "launcher-"));
afterAll(() => rm(dataDir, { recursive: true }));

const launched = (programs: readonly string[], env: Record<string, string> = {}): Run =>
  run([script, ...programs], { DATA_DIR: dataDir, ...env });

/** The process of a child, as its log tells it. */
const pidOf = async (it: Run, name: string, nth = 1): Promise<number> => {
  const line = `"service":"${name}","pid":(\\d+),"msg":"ready at[\\s\\S]*?`.repeat(nth);
  return Number((await it.printed(new RegExp(line))).at(-1));
};

describe("a start", () => {
  test("shows every address once all are ready, and what to try", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:well", "category:well", "order:well", "inventory:well"]);
    await it.printed(/Ctrl-C stops everything/);
    const screen = it.output().slice(it.output().indexOf("\n  Console"));
    expect(screen.replace(/\d+\.\d s/, "1.0 s").replaceAll(dataDir, "data")).toBe(`
  Console    http://127.0.0.1/gateway/       pets, orders and stock in the browser, live
  API        http://127.0.0.1/gateway        HTTP and JSON, Connect, gRPC-Web
  Docs       http://127.0.0.1/gateway/docs   every operation, described
  pet        http://127.0.0.1/pet            gRPC, gRPC-Web, Connect
  category   http://127.0.0.1/category       gRPC, gRPC-Web, Connect
  order      http://127.0.0.1/order          gRPC, gRPC-Web, Connect
  inventory  http://127.0.0.1/inventory      gRPC, gRPC-Web, Connect

Try in another terminal:
  A shop with 300 pets, and customers until Ctrl-C:
    npm run demo -- --url http://127.0.0.1/gateway
  A category, a pet in it, and an order for the pet:
    PETSTORE_URL=http://127.0.0.1/gateway sh examples/curl/order.sh
  All pets:
    curl http://127.0.0.1/gateway/pets

The petstore is ready (1.0 s). Data is in data. Ctrl-C stops everything.

`);
  });

  test("shows how to get a credential and where to put it, when one is asked for", { timeout }, async () => {
    const keys = join(dataDir, "keys.json");
    await writeFile(keys, '{"keys":[]}');
    await using it = launched(["gateway:well"], { AUTH_MODE: "keys", API_KEYS_FILE: keys });
    await it.printed(/Ctrl-C stops everything/);
    expect(it.output()).toContain("another terminal, with an API key, such as `npm run -s keys -- create --name me");
    expect(it.output()).toMatch(/^ {4}curl .* -H "authorization: Bearer \$CREDENTIAL"$/m);
  });

  test("shows no colours when nobody looks", { timeout }, async () => {
    await using it = launched(["gateway:well"]);
    await it.printed(/is ready/);
    expect(it.output()).not.toContain("\u001b");
  });

  test("a process that refuses to start is told in one line, ends the others and exits 1", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:refuse"]);
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/^The petstore can't start\. pet: the cellar is flooded$/m);
    expect(it.output()).not.toContain("is ready");
    expect(it.output()).not.toContain("    at ");
  });

  test("tells which processes it waits for", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:slow"]);
    await it.printed(/^waiting for pet \.\.\.$/m);
  });

  test("tells what its processes wait for, once", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:wait", "order:wait"]);
    await it.printed(/^waiting for pet, order \.\.\. \(the tide\)$/m);
  });

  test("names every wrong environment variable at once, before anything runs", { timeout }, async () => {
    await using it = launched(["gateway:well"], { PORT_BASE: "eighty", LOG_LEVEL: "loud" });
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/PORT_BASE=eighty is wrong[\s\S]*LOG_LEVEL=loud is wrong/);
    expect(it.output()).not.toContain("ready at");
  });

  test("tells what has no effect, once, and begins all the same", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:well"], { PORT: "3000", AUTHMODE: "keys" });
    await it.printed(/is ready/);
    expect(it.output().match(/^AUTHMODE has no effect: perhaps AUTH_MODE is meant\.$/gm)).toHaveLength(1);
    expect(it.output().match(/^PORT has no effect here.*PORT_BASE=3000.*$/gm)).toHaveLength(1);
  });

  test("refuses credentials that nobody would ask for", { timeout }, async () => {
    await using it = launched(["gateway:well"], { API_KEYS_FILE: "missing.json", AUTHMODE: "keys" });
    expect(await it.ended).toBe(1);
    expect(it.output()).toContain("AUTHMODE has no effect: perhaps AUTH_MODE is meant.");
    expect(it.output()).toMatch(
      /can't start\. AUTH_MODE is not set: API_KEYS_FILE has no effect.*Set AUTH_MODE=keys, or/,
    );
  });

  test("refuses a data directory that can't be written", { timeout }, async () => {
    const file = join(dataDir, "file");
    await writeFile(file, "no directory");
    await using it = launched(["gateway:well"], { DATA_DIR: join(file, "data") });
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/can't start\. \S+file\/data can't be written \(ENOTDIR\b.*set DATA_DIR/);
    expect(existsSync(join(file, "data"))).toBe(false);
  });

  test.skipIf(process.platform !== "linux").each(["/proc/petstore", "/proc/self/deep/petstore"])(
    "refuses at once a data directory that nobody can make: %s",
    { timeout },
    async (path) => {
      await using it = launched(["gateway:well"], { DATA_DIR: path });
      expect(await it.ended).toBe(1);
      expect(it.output()).toMatch(
        /^The petstore can't start\. \/proc\S+ can't be written \(ENOENT\b.*set DATA_DIR.*\n$/,
      );
    },
  );

  test("one admin port for all is refused", { timeout }, async () => {
    await using it = launched(["gateway:well"], { ADMIN_PORT: "9000" });
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(
      /can't start\. ADMIN_PORT=9000 is one port, and each process has its own: leave it out/,
    );
  });
});

describe("one DATA_DIR", () => {
  test("is taken by one of those that start at once; the other says who has it", { timeout }, async () => {
    const fresh = { DATA_DIR: join(dataDir, "at-once") };
    await using one = launched(["gateway:well", "pet:well"], { ...fresh, PORT_BASE: "21000" });
    await using other = launched(["gateway:well", "pet:well"], { ...fresh, PORT_BASE: "22000" });
    const [loser, winner] = await Promise.race([
      one.ended.then(() => [one, other]),
      other.ended.then(() => [other, one]),
    ]);
    expect(await loser?.ended).toBe(1);
    const port = winner === one ? 21000 : 22000;
    expect(loser?.output()).toContain(
      `The petstore can't start. ${fresh.DATA_DIR} is in use by another petstore (process ${winner?.process.pid}, port ${port}): ` +
        "stop that one, or give this one a DATA_DIR and a PORT_BASE of its own.",
    );
    expect(loser?.output()).not.toContain("ready at");
    await winner?.printed(/is ready/);
  });

  test("is free again when whoever had it was killed", { timeout }, async () => {
    for (let i = 0; i < 2; i++) {
      await using it = launched(["pet:well"]);
      await it.printed(/is ready/);
      it.process.kill("SIGKILL");
      await it.ended;
    }
  });
});

describe("while it runs", () => {
  test("a crashed process is restarted, and people are told", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:well"]);
    await it.printed(/is ready/);
    process.kill(await pidOf(it, "pet"), "SIGKILL");
    await it.printed(/^pet ended \(SIGKILL\); starting it again in 0\.5 s$/m);
    await it.printed(/^pet is back at http:/m);
    process.kill(await pidOf(it, "pet", 2), "SIGKILL");
    await it.printed(/^pet ended \(SIGKILL\); starting it again in 1 s$/m);
  });
});

test("SIGUSR1 opens no inspector, neither in the processes nor in the launcher as npm starts it", {
  timeout,
}, async () => {
  const { start } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8")).scripts;
  const [, flags = ""] = /&& node (.*)launcher\/main\.ts\b/.exec(start) ?? [];
  await using it = run([...flags.trim().split(" "), script, "gateway:well", "pet:well"], { DATA_DIR: dataDir });
  await it.printed(/is ready/);
  for (const pid of [it.process.pid as number, await pidOf(it, "gateway"), await pidOf(it, "pet")])
    process.kill(pid, "SIGUSR1");
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  it.process.kill("SIGTERM");
  expect(await it.ended).toBe(0);
  expect(it.output()).not.toContain("Debugger listening");
});

describe("the end", () => {
  test("a process that can't go on ends all, with a code that service managers can be told of", {
    timeout,
  }, async () => {
    await using it = launched(["gateway:well", "pet:give-up"]);
    expect(await it.ended).toBe(78);
    expect(it.output()).toMatch(/^The petstore ends\. pet can't go on, and its log says why$/m);
    expect(it.output()).toMatch(/"service":"gateway".*"msg":"stopped"/);
    expect(it.output()).not.toContain("starting it again");
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s stops all and exits 0", { timeout }, async (signal) => {
    await using it = launched(["gateway:well", "pet:well"]);
    await it.printed(/is ready/);
    it.process.kill(signal);
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain(`${signal}: stopping`);
    expect(it.output().match(/"msg":"stopped"/g)).toHaveLength(2);
    expect(it.output().indexOf('"gateway"', it.output().indexOf("stopping:"))).toBeLessThan(
      it.output().lastIndexOf('"pet"'),
    );
  });

  test("Ctrl-C while a crashed process waits to be restarted", { timeout }, async () => {
    await using it = launched(["--pause=3600000", "gateway:well"]);
    await it.printed(/is ready/);
    process.kill(await pidOf(it, "gateway"), "SIGKILL");
    await it.printed(/starting it again in 3600 s/);
    it.process.kill("SIGINT");
    expect(await it.ended).toBe(0);
    expect(it.output()).not.toContain("is back");
  });

  test("a process that doesn't stop in time is killed", { timeout }, async () => {
    await using it = launched(["pet:stubborn"]);
    await it.printed(/is ready/);
    process.kill(await pidOf(it, "pet"), "SIGSTOP");
    it.process.kill("SIGTERM");
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain("not ended within 10 s: killing");
  });

  test("a second signal kills", { timeout }, async () => {
    await using it = launched(["pet:stubborn"]);
    await it.printed(/is ready/);
    it.process.kill("SIGINT");
    await it.printed(/the launcher says so/);
    await new Promise((resolve) => setTimeout(resolve, 600));
    it.process.kill("SIGINT");
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain("asked twice");
  });

  test("one that comes twice at once, from the terminal and from npm, is one", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:well"]);
    await it.printed(/is ready/);
    sendAtOnce(it.process, "SIGINT", "SIGTERM");
    expect(await it.ended).toBe(0);
    expect(it.output()).not.toContain("asked twice");
    expect(it.output().match(/"msg":"stopped"/g)).toHaveLength(2);
  });

  test("the processes end when the launcher is killed", { timeout }, async () => {
    await using it = launched(["gateway:well", "pet:well"]);
    await it.printed(/is ready/);
    it.process.kill("SIGKILL");
    // Ended means here that nobody holds the output open any more.
    expect(await it.ended).toBe("SIGKILL");
    expect(it.output().match(/the launcher is gone/g)).toHaveLength(2);
  });
});

describe("ends when npm, which started it, is gone without a word", () => {
  /** Runs a command in a shell, whose end is told when all its processes have ended: the last of them closes the pipes. */
  function shell(command: string, env: NodeJS.ProcessEnv = {}) {
    const settings = { ...process.env, DATA_DIR: dataDir, ...env };
    const it = spawn("sh", ["-c", command], { env: settings, detached: true });
    let isClosed = false;
    const closed = once(it, "close").finally(() => (isClosed = true));
    onTestFinished(() => void (isClosed || process.kill(-(it.pid as number), "SIGKILL"))); // all of its group
    let output = "";
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    for (const stream of [it.stdout, it.stderr])
      stream.on("data", (text) => {
        output += text;
        if (output.includes("is ready")) resolve();
      });
    return { ready, kill: () => it.kill("SIGKILL"), closed, output: () => output };
  }
  async function killed(command: string, env?: NodeJS.ProcessEnv): Promise<string> {
    const { ready, kill, closed, output } = shell(command, env);
    await ready;
    kill();
    await closed;
    return output();
  }
  const node = `"${process.execPath}" "${script}"`;
  const stopped = /^npm is gone: stopping$[\s\S]*^stopped$/m;

  test("where it is npm's child", { timeout }, async () => {
    expect(await killed(`${node} --started-by=$$ gateway:well pet:well; true`)).toMatch(stopped);
  });

  test("where nobody asks how npm ended", { timeout }, async () => {
    const npm = `sh -c '${node} --started-by=$$ gateway:well pet:well; true'`;
    const { ready, kill, closed, output } = shell(`${npm} & echo "npm is $!"; exec sleep 600`);
    await ready;
    await expect.poll(output).toMatch(/^npm is \d+$/m);
    process.kill(Number(/^npm is (\d+)$/m.exec(output())?.[1]), "SIGKILL");
    await expect.poll(output, { timeout: 30_000 }).toMatch(stopped);
    kill();
    await closed;
  });

  test("where a shell stays between the two", { timeout }, async () => {
    expect(await killed(`sh -c '${node} --started-by=$PPID gateway:well pet:well; true'; true`)).toMatch(stopped);
  });

  test("before it has begun", { timeout }, async () => {
    const { pid } = spawnSync("true");
    await using it = launched([`--started-by=${pid}`, "gateway:well", "pet:well"]);
    expect(await it.ended).toBe(0);
    expect(it.output()).toMatch(stopped);
  });

  test("as `npm start` has it: ports and data are free again", { timeout }, async () => {
    const env = { DATA_DIR: join(dataDir, "npm"), PORT_BASE: `${await freePorts()}` };
    for (let i = 0; i < 2; i++) expect(await killed("exec npm start", env)).toMatch(stopped);
  });

  test("and at the end of nobody else, though npm may have started that", { timeout }, async () => {
    const env = { DATA_DIR: join(dataDir, "alone"), npm_lifecycle_event: "start" };
    const { ready, kill, closed, output } = shell(`${node} pet:well; true`, env);
    await ready;
    kill();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    process.kill(Number(readFileSync(join(env.DATA_DIR, "launcher.pid"), "utf8").split("\n")[0]), "SIGTERM");
    await closed;
    expect(output()).toMatch(/^SIGTERM: stopping$/m);
  });
});

test("that nobody reads any more what it says is no reason to end", { timeout }, async () => {
  const launcher = spawn(process.execPath, [script, "pet:well"], { env: { ...process.env, DATA_DIR: dataDir } });
  const ended = once(launcher, "exit");
  const pids: number[] = [];
  let heard = Promise.withResolvers<void>();
  launcher.stdout.on("data", (lines) => {
    for (const [, pid] of `${lines}`.matchAll(/"pid":(\d+),"msg":"ready at/g)) pids.push(Number(pid));
    heard.resolve();
    heard = Promise.withResolvers();
  });
  while (pids.length < 1) await heard.promise;
  launcher.stderr.destroy();
  process.kill(pids[0] as number, "SIGKILL");
  while (pids.length < 2) await heard.promise;
  launcher.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
});
