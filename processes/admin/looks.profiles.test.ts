import { expect, test } from "vitest";
import { type AdminAnswer, type AdminRoutes, Unusable } from "../admin.ts";
import { addProfiles } from "./looks.ts";

const routes: AdminRoutes = new Map();
addProfiles(routes);
const ask = async (kind: "cpu" | "heap", seconds = "1"): Promise<AdminAnswer> =>
  (await routes.get(`GET /profile/${kind}`)?.("", new URLSearchParams({ seconds }))) as AdminAnswer;

/** Keeps the process busy under a name, and what it makes. */
function toil(kept: unknown[]): void {
  const end = performance.now() + 20;
  while (performance.now() < end) kept.push({ a: Math.sqrt(kept.length) });
}

async function toilDuring<T>(profile: Promise<T>): Promise<T> {
  const kept: unknown[] = [];
  const timer = setInterval(toil, 30, kept);
  return profile.finally(() => clearInterval(timer));
}

test("a CPU profile names what was running, in the form of a .cpuprofile", async () => {
  const { status, body } = await toilDuring(ask("cpu"));
  expect(status).toBe(200);
  expect(body).toMatchObject({ startTime: expect.any(Number), endTime: expect.any(Number) });
  const { nodes, samples, timeDeltas } = body as Record<string, { callFrame: { functionName: string } }[]>;
  expect(samples?.length).toBe(timeDeltas?.length);
  expect(nodes?.map(({ callFrame }) => callFrame.functionName)).toContain("toil");
});

interface Node {
  readonly callFrame: { readonly functionName: string };
  readonly selfSize: number;
  readonly children: readonly Node[];
}
const all = (node: Node): Node[] => [node, ...node.children.flatMap(all)];

test("a heap profile names what allocated and is kept, in the form of a .heapprofile", async () => {
  const { status, body } = await toilDuring(ask("heap"));
  expect(status).toBe(200);
  const toiled = all((body as { head: Node }).head).filter(({ callFrame }) => callFrame.functionName === "toil");
  expect(toiled.reduce((sum, { selfSize }) => sum + selfSize, 0)).toBeGreaterThan(0);
});

test("one is taken at a time, and after it another", async () => {
  const first = ask("cpu");
  expect(await ask("heap")).toMatchObject({
    status: 409,
    body: { message: expect.stringContaining("ask again behind it") },
  });
  expect(await first).toMatchObject({ status: 200 });
  expect(await ask("cpu")).toMatchObject({ status: 200 });
});

test.each(["0", "61", "1.5", "", "long"])("seconds=%s is refused", async (seconds) => {
  await expect(ask("cpu", seconds)).rejects.toThrow(Unusable);
  await expect(ask("cpu", seconds)).rejects.toThrow("seconds must be a whole number from 1 to 60.");
});
