/** Tries a case, and checks its effect on the petstore or on this process. */
import { setTimeout as sleep } from "node:timers/promises";
import { Find } from "./find.ts";
import type { Subject } from "./subject.ts";
import type { LocalTarget, RemoteTarget, Target } from "./target.ts";

/**
 * The cost that a case may have, in processor time, which does not depend on other load on the machine. Compilation and
 * garbage collection add to it, so an expensive case is tried again, and the lowest cost counts.
 */
const FREE_NS = 150e6;
const NS_PER_BYTE = 4000;
/** The share of elapsed time that five idle processes may use. */
const IDLE_SHARE = 0.1;
const AGAIN = 3;
/** How long it takes until the end of a process is noticed, in milliseconds. */
const END_MS = 500;

export interface Trials {
  /** The problem that the case shows; undefined if there is none. */
  try<C>(target: Target<C>, one: C): Promise<Find | undefined>;
  /** Tries a case once more, on renewed records: it can't change the old ones again. */
  again<C>(target: Target<C>, one: C): Promise<Find | undefined>;
  /** Does this several times, since some problems are random. Undefined if this problem does not appear. */
  repeat<C>(target: Target<C>, one: C, problem: string): Promise<Find | undefined>;
}

/** `subject` may be undefined if all targets are local. */
export function createTrials(subject: Subject | undefined): Trials {
  /** The state of the store; undefined once something may have changed it. */
  let known: string | undefined;
  /** Whether a change may still be under way: it was requested, and its answer did not come. */
  let isUnsettled = false;

  async function attempt<C>(target: Target<C>, one: C): Promise<Find | undefined> {
    try {
      if ("call" in target) await local(target, one);
      else if (subject) await remote(target, one, subject);
      return undefined;
    } catch (error) {
      known = undefined;
      if (error instanceof Find) return error;
      throw error;
    }
  }

  async function again<C>(target: Target<C>, one: C): Promise<Find | undefined> {
    if ("send" in target && subject) {
      await subject.neighbour.renew();
      known = undefined;
    }
    return attempt(target, one);
  }

  async function remote<C>(target: RemoteTarget<C>, one: C, subject: Subject): Promise<void> {
    const { bytes, ...cost } = await sendOnce(target, one, subject);
    // Each attempt may end differently.
    await expectCheap(bytes, cost, () => sendOnce(target, one, subject));
  }

  async function sendOnce<C>(
    target: RemoteTarget<C>,
    one: C,
    subject: Subject,
  ): Promise<Cost & { readonly bytes: number }> {
    const { cpu, look, neighbour } = subject;
    if (isUnsettled) known = await settle(neighbour.state);
    isUnsettled = true;
    known ??= await neighbour.state();
    const work = async () => {
      try {
        const sent = await target.send(one, subject);
        await neighbour.ask(sent.to);
        return sent;
      } catch (error) {
        // A process that ended or logged an error says more than a missing answer.
        await sleep(END_MS);
        await look();
        throw error;
      }
    };
    const { result: sent, ...cost } = await spent(cpu, work);
    isUnsettled = sent.writes && !sent.isAnswered;
    await look();
    if (sent.writes) {
      const before = known;
      known = sent.isRefused ? await neighbour.state() : undefined;
      if (sent.isRefused && known !== before)
        throw new Find("what was refused has changed something", `${before}\n${known}`);
    }
    return { bytes: sent.bytes, ...cost };
  }

  return {
    try: attempt,
    again,
    async repeat(target, one, problem) {
      for (let i = 0; i < AGAIN; i++) {
        const find = await again(target, one);
        if (find?.problem === problem) return find;
      }
      return undefined;
    },
  };
}

async function local<C>(target: LocalTarget<C>, one: C): Promise<void> {
  const own = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) * 1000;
  };
  const work = async () => target.call(one);
  const { result: bytes, ...cost } = await spent(own, work);
  await expectCheap(bytes, cost, () => spent(own, work));
}

/** Waits until nothing changes any more: a request is carried out even after its connection is gone. */
async function settle(state: () => Promise<string>): Promise<string> {
  let before = await state();
  for (let same = 0; same < SAME; ) {
    await sleep(PAUSE_MS);
    const now = await state();
    same = now === before ? same + 1 : 0;
    before = now;
  }
  return before;
}
const SAME = 2;
/** A deletion takes several calls between services, and between two of them nothing has changed yet. */
const PAUSE_MS = 25;

interface Cost {
  /** Processor time; undefined if the system does not tell. */
  readonly ns: number | undefined;
  readonly elapsedNs: number;
}

async function spent<T>(cpu: () => number | undefined, work: () => Promise<T>): Promise<Cost & { readonly result: T }> {
  const [before, start] = [cpu(), process.hrtime.bigint()];
  const result = await work();
  const after = cpu();
  const ns = before === undefined || after === undefined ? undefined : after - before;
  return { result, ns, elapsedNs: Number(process.hrtime.bigint() - start) };
}

async function expectCheap(bytes: number, first: Cost, again: () => Promise<Cost>): Promise<void> {
  const excessOf = ({ ns = 0, elapsedNs }: Cost) => ns - FREE_NS - NS_PER_BYTE * bytes - IDLE_SHARE * elapsedNs;
  let [least, cost] = [excessOf(first), first];
  for (let i = 0; i < AGAIN && least > 0; i++) {
    cost = await again();
    least = Math.min(least, excessOf(cost));
  }
  if (least > 0)
    throw new Find("it costs too much", `${Math.round((cost.ns ?? 0) / 1e6)} ms of the processor for ${bytes} bytes`);
}
