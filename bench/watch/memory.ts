/** Measures the memory of a process after garbage collection, by its inspector, which a signal opens. */
import { setTimeout as sleep } from "node:timers/promises";
import { resident } from "../measure/proc.ts";

export interface Memory {
  /** Resident memory, as the system counts it, in bytes. */
  readonly rss: number;
  /** Used bytes of V8's heap, and of external memory that belongs to objects in it. */
  readonly heap: number;
}

/** NODE_OPTIONS for the processes, one of which is inspected. The launcher keeps Node's own signal for this from them. */
export function inspectable(port: number): string {
  const script = `import { open } from "node:inspector"; process.once("SIGUSR2", () => open(${port}, "127.0.0.1"));`;
  return `--import data:text/javascript,${encodeURIComponent(script)}`;
}

/** Time for the connections and timers of a start or of new streams to finish. In milliseconds. */
const SETTLE_MS = 3_000;
const OPEN_MS = 5_000;

interface Answer {
  readonly id?: number;
  readonly result?: { readonly result?: { readonly value?: unknown } };
}

async function inspectorOf(pid: number, port: number): Promise<string> {
  process.kill(pid, "SIGUSR2");
  for (const end = performance.now() + OPEN_MS; performance.now() < end; await sleep(50)) {
    const answer = await fetch(`http://127.0.0.1:${port}/json/list`).catch(() => undefined);
    if (!answer) continue;
    const [target] = (await answer.json()) as { webSocketDebuggerUrl: string }[];
    if (target) return target.webSocketDebuggerUrl;
  }
  throw new Error(`Process ${pid} did not open its inspector at port ${port}.`);
}

/** Returns a function that waits until the process is at rest and measures it. */
export async function openMemory(pid: number, port: number): Promise<() => Promise<Memory>> {
  const socket = new WebSocket(await inspectorOf(pid, port));
  const waiting = new Map<number, (answer: Answer) => void>();
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("The inspector let nobody in."));
  });
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(`${data}`) as Answer;
    waiting.get(answer.id ?? 0)?.(answer);
  };
  let last = 0;
  const ask = (method: string, params = {}) =>
    new Promise<Answer>((resolve) => {
      const id = ++last;
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
  const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
  return async () => {
    await sleep(SETTLE_MS);
    // The second collection frees what the first one finalizes.
    for (let i = 0; i < 2; i++) await ask("HeapProfiler.collectGarbage");
    await sleep(SETTLE_MS / 3);
    const { result } = await ask("Runtime.evaluate", { expression });
    return { rss: resident([pid]), heap: Number(result?.result?.value) };
  };
}
