import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Machine, networkMissing, startNetwork } from "./network.ts";

/** Whether a connection from one machine to an address comes to be: nobody listens, so it is refused if it arrives. */
const reaches = ({ prefix: [program = "", ...prefix] }: Machine, address: string): boolean => {
  const connecting = `require("node:net").connect(9, "${address}").once("error", ({ code }) => {
    process.stdout.write(code, () => process.exit()) });
    setTimeout(() => process.exit(), 1000)`;
  const args = [...prefix, process.execPath, "-e", connecting];
  return execFileSync(program, args, { encoding: "utf8" }) === "ECONNREFUSED";
};

test.skipIf(networkMissing)("a cut ends what goes between two machines, and nothing else", async () => {
  await using network = await startNetwork(2);
  const [a, b] = network.machines as [Machine, Machine];
  expect([reaches(a, b.address), reaches(b, a.address), reaches(a, network.here)]).toEqual([true, true, true]);
  await network.cut(a, [b.address]);
  expect([reaches(a, b.address), reaches(b, a.address), reaches(a, network.here)]).toEqual([false, false, true]);
  await network.heal(a);
  expect([reaches(a, b.address), reaches(b, a.address)]).toEqual([true, true]);
});

test.skipIf(networkMissing)("the machines end with the process that made them, also when that is killed", async () => {
  const start = `
    const { startNetwork } = await import(${JSON.stringify(join(import.meta.dirname, "network.ts"))});
    console.log((await startNetwork(1)).machines[0].prefix[3]);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", start], { stdio: ["ignore", "pipe", "inherit"] });
  const [output] = await once(child.stdout, "data");
  const name = `${output}`.trim();
  const names = () => ["netns", "link"].map((what) => execFileSync("ip", [what], { encoding: "utf8" })).join("");
  expect(names()).toContain(name);
  child.kill("SIGKILL");
  // Never, and the test runs out of time.
  while (names().includes(name)) await sleep(50);
});
