/** Priorities of processes, for when there are more of them than processors. */
import { setPriority } from "node:os";

/** Sets the priority of a process (`os.setPriority`), if this user may: only root may raise it. */
export function tryPriority(pid: number, priority: number): void {
  try {
    setPriority(pid, priority);
  } catch {
    // This user may not, or the process has ended already.
  }
}
