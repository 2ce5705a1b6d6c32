import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { run, sendAtOnce } from "./fixtures/run.ts";
import { LAUNCHED } from "./lifecycle.ts";

const script = join(import.meta.dirname, "fixtures/child.ts");
const child = (behaviour: string) => run([script, "child", behaviour]);
const launched = (behaviour: string) => run([script, "child", behaviour], { [LAUNCHED]: "1" }, true);
/** Started by somebody else who opens an IPC channel. */
const forked = (behaviour: string) => run([script, "child", behaviour], {}, true);

describe("a process alone", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s closes what it opened, last first, and exits 0",
    async (signal) => {
      await using it = child("well");
      await it.printed(/ready at/);
      it.process.kill(signal);
      expect(await it.ended).toBe(0);
      const order = ["last opened", "first opened", "stopped"].map((words) => it.output().indexOf(words));
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      expect(order).not.toContain(-1);
    },
  );

  test("what only its start needed is collected, though it has nothing to do", async () => {
    await using it = child("tidy");
    await it.printed(/ready at[\s\S]*garbage collected/);
  });

  test("a second signal ends it at once, unless it is the first one passed on by npm", async () => {
    await using it = child("stubborn");
    await it.printed(/ready at/);
    sendAtOnce(it.process, "SIGINT", "SIGTERM");
    await it.printed(/stopping/);
    expect(await Promise.race([it.ended, new Promise((resolve) => setTimeout(resolve, 300, "goes on"))])).toBe(
      "goes on",
    );
    const again = setInterval(() => it.process.kill("SIGTERM"), 100);
    expect(await it.ended.finally(() => clearInterval(again))).toBe(143);
  });

  test("a stop that hangs ends by itself", { timeout: 30_000 }, async () => {
    await using it = child("stubborn");
    await it.printed(/ready at/);
    it.process.kill("SIGTERM");
    expect(await it.ended).toBe(1);
    expect(it.output()).toContain("still not stopped");
  });

  test("a process may set the limit of its stop itself", async () => {
    await using it = child("brief");
    await it.printed(/ready at/);
    it.process.kill("SIGTERM");
    expect(await it.ended).toBe(1);
    expect(it.output()).toContain("still not stopped after 300 ms");
  });

  test("a start that fails is one line, exit code 1, and closes what was open", async () => {
    await using it = child("refuse");
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/^the cellar is flooded$/m);
    expect(it.output()).toContain("first opened is closed last");
    expect(it.output()).not.toContain("    at ");
  });

  test("a mistake in the program shows its stack", async () => {
    await using it = child("bug");
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/TypeError: x is not a function\n {4}at /);
  });

  test("an uncaught error is logged once and ends it with code 1", async () => {
    await using it = child("throw");
    expect(await it.ended).toBe(1);
    expect(it.output().match(/boom.*uncaught error|uncaught error.*boom/g)).toHaveLength(1);
  });
});

describe("a process whose parent has an IPC channel of its own, as pm2 and fork have", () => {
  test.each(["SIGINT", "SIGHUP", "SIGTERM"] as const)("%s stops it", async (signal) => {
    await using it = forked("well");
    await it.printed(/ready at/);
    it.process.kill(signal);
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain(`stopping: ${signal}`);
  });

  test("leaves that channel alone: it sends nothing, obeys nothing, and outlives its parent", async () => {
    await using it = forked("well");
    const messages: unknown[] = [];
    it.process.on("message", (message) => messages.push(message));
    await it.printed(/ready at/);
    for (const message of [null, "shutdown", 1, {}, { type: "ping" }, { type: "stop" }])
      it.process.send(message as object);
    it.process.disconnect();
    expect(await Promise.race([it.ended, new Promise((resolve) => setTimeout(resolve, 500, "goes on"))])).toBe(
      "goes on",
    );
    it.process.kill("SIGTERM");
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain("stopping: SIGTERM");
    expect(messages).toEqual([]);
  });

  test("says itself why it can't start", async () => {
    await using it = forked("refuse");
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/^the cellar is flooded$/m);
  });
});

describe("under the launcher", () => {
  test("says that it is ready, leaves SIGINT and SIGHUP to the launcher, and stops when told", async () => {
    await using it = launched("well");
    expect((await once(it.process, "message"))[0]).toEqual({ type: "ready", url: "http://127.0.0.1/child" });
    it.process.kill("SIGINT");
    it.process.kill("SIGHUP");
    for (const message of [null, "shutdown", 1, {}, { type: "nothing" }]) it.process.send(message as object);
    it.process.send({ type: "stop" });
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain("the launcher says so");
    expect(it.output()).not.toContain("SIGINT");
  });

  test("answers a ping", async () => {
    await using it = launched("well");
    await once(it.process, "message");
    it.process.send({ type: "ping" });
    expect((await once(it.process, "message"))[0]).toEqual({ type: "alive" });
  });

  test("hears a stop that came before it was up", async () => {
    await using it = launched("well");
    it.process.send({ type: "stop" });
    expect(await it.ended).toBe(0);
  });

  test("tells why it can't start", async () => {
    await using it = launched("refuse");
    expect((await once(it.process, "message"))[0]).toEqual({ type: "refused", message: "the cellar is flooded" });
    expect(await it.ended).toBe(1);
  });

  test("shows the stack of a mistake in the program as well", async () => {
    await using it = launched("bug");
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(/TypeError: x is not a function\n {4}at /);
  });

  test("a stop in the middle of the start does not wait for the rest of it", async () => {
    await using it = launched("slow");
    it.process.send({ type: "stop" });
    expect(await it.ended).toBe(0);
    expect(it.output()).not.toContain("ready at");
  });

  test("goes on stopping when the launcher says so, too, or goes", async () => {
    await using it = launched("leisurely");
    await once(it.process, "message");
    it.process.kill("SIGTERM");
    await it.printed(/stopping: SIGTERM/);
    it.process.send({ type: "stop" });
    it.process.disconnect();
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain("stopped");
  });

  test("goes on stopping when a signal comes behind what the launcher says, and ends at once with the second", async () => {
    await using it = launched("stubborn");
    await once(it.process, "message");
    it.process.send({ type: "stop" });
    await it.printed(/stopping: the launcher says so/);
    it.process.kill("SIGTERM");
    expect(await Promise.race([it.ended, new Promise((resolve) => setTimeout(resolve, 300, "goes on"))])).toBe(
      "goes on",
    );
    // On a busy machine two may arrive as one.
    const again = setInterval(() => it.process.kill("SIGTERM"), 100);
    expect(await it.ended.finally(() => clearInterval(again))).toBe(143);
  });

  test("ends when the launcher was gone before it was up", async () => {
    await using it = launched("late");
    it.process.disconnect();
    expect(await it.ended).toBe(0);
  });

  test("stops when the launcher is gone", async () => {
    await using it = launched("well");
    await once(it.process, "message");
    it.process.disconnect();
    expect(await it.ended).toBe(0);
    expect(it.output()).toContain("the launcher is gone");
  });
});
