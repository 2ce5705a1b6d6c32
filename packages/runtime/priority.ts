/** Which processes go first where all want more than there are processors. */
import { setPriority } from "node:os";

/** Gives a process a priority of `os.setPriority`, where this user may: only root may let one go before others. */
export function tryPriority(pid: number, priority: number): void {
  try {
    setPriority(pid, priority);
  } catch {
    // Not this user's to say, or it has ended already.
  }
}
