/** One case, tried: what it did to the petstore, or to this process. */
import { setTimeout as sleep } from "node:timers/promises";
import { Find } from "./find.ts";
import type { Subject } from "./subject.ts";
import type { LocalTarget, RemoteTarget, Target } from "./target.ts";

/**
 * What a case may cost: processor time, which does not depend on who else uses the machine. Code that is compiled and
 * garbage that is collected come in between, so a case that costs more is tried again, and the least counts.
 */
const FREE_NS = 150e6;
const NS_PER_BYTE = 4000;
/** Of the time that passes, what five processes may use while nobody asks them for anything. */
const IDLE_SHARE = 0.1;
const AGAIN = 3;
/** Until the end of a process is known here. */
const END_MS = 500;

export interface Trials {
  /** What is wrong with it; undefined when nothing is. */
  try<C>(target: Target<C>, one: C): Promise<Find | undefined>;
  /** Tries a case that was tried before, on other records: what it has made of those, it can't change once more. */
  again<C>(target: Target<C>, one: C): Promise<Find | undefined>;
  /** The same a few times: some problems are up to chance. Undefined when it does not show this one. */
  repeat<C>(target: Target<C>, one: C, problem: string): Promise<Find | undefined>;
}

/** For targets that send nothing the subject may be missing. */
export function createTrials(subject: Subject | undefined): Trials {
  /** What there is in the store, as long as nothing can have changed it. */
  let known: string | undefined;
  /** A change was asked for, and its answer did not come: it may still be under way. */
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
    // Each time may end otherwise than the time before.
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
        // A process that ended, or that logs an error, says more than the answer that never came.
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

/** Until nothing changes any more: what is done for a request whose connection has gone takes as long as any. */
async function settle(state: () => Promise<string>): Promise<string> {
  let before = await state();
  for (let same = 0; same < SAME; ) {
    const now = await state();
    same = now === before ? same + 1 : 0;
    before = now;
  }
  return before;
}
const SAME = 2;

interface Cost {
  /** Undefined where the system does not tell. */
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
