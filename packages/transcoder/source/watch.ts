/** Reads a contract again and again, and tells when it has changed. */
import { setTimeout as pause } from "node:timers/promises";
import type { Contract } from "./contract.ts";

export interface Watching {
  /** The contract as it is now. Throws where it can't be read. */
  readonly read: () => Promise<Contract>;
  /** Of the contract that is served. */
  readonly fingerprint: string;
  /** Takes a contract that has changed, or throws: then the one before goes on being served. */
  readonly onChange: (contract: Contract) => Promise<void>;
  /** Is told once of each reason for which a contract can't be read or taken, not each time. */
  readonly onProblem: (error: Error) => void;
  /** Milliseconds between the end of one reading and the next. */
  readonly everyMs: number;
  readonly signal: AbortSignal;
}

/** Resolves when the signal aborts. */
export async function watchContract(watching: Watching): Promise<void> {
  const { read, onChange, onProblem, everyMs, signal } = watching;
  let served = watching.fingerprint;
  let refused: string | undefined;
  let problem: string | undefined;
  while (await pause(everyMs, true, { signal }).catch(() => false)) {
    try {
      const contract = await read();
      problem = undefined;
      if (contract.fingerprint === served) refused = undefined;
      if (contract.fingerprint === served || contract.fingerprint === refused) continue;
      refused = contract.fingerprint;
      await onChange(contract);
      [served, refused] = [contract.fingerprint, undefined];
    } catch (error) {
      const { message } = error as Error;
      if (message !== problem && !signal.aborted) onProblem(error as Error);
      problem = message;
    }
  }
}
