/** Reads and parses what Linux counts in /proc, for processes and for the whole machine. */
import { readFileSync } from "node:fs";

/** Length of a tick of the clocks in /proc: USER_HZ is 100 on every Linux. */
const TICK_MICROS = 10_000;

/** The fields of /proc/PID/stat from the third on. The second is a name that may contain blanks. */
const fields = (stat: string): number[] =>
  stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
const at = (numbers: readonly number[], field: number): number => numbers[field - 3] ?? Number.NaN;

/** Processor time of a process and all its threads, in microseconds. */
export function cpuOf(stat: string): number {
  const numbers = fields(stat);
  return (at(numbers, 14) + at(numbers, 15)) * TICK_MICROS;
}

/** Processor time of a process's children that have ended and were waited for, in microseconds. */
export function cpuOfEndedChildren(stat: string): number {
  const numbers = fields(stat);
  return (at(numbers, 16) + at(numbers, 17)) * TICK_MICROS;
}

/** Processor time of all cores, and how much of it was used, in microseconds: /proc/stat. Waiting for a disk is not use. */
export function cpuOfMachine(stat: string): { busy: number; total: number } {
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = stat
    .slice(stat.indexOf("cpu ") + 4, stat.indexOf("\n"))
    .trim()
    .split(/ +/)
    .map((ticks) => Number(ticks) * TICK_MICROS);
  const busy = user + nice + system + irq + softirq + steal;
  return { busy, total: busy + idle + iowait };
}

/** Resident memory in bytes: /proc/PID/status. A process that has ended and is still listed has none. */
export const residentOf = (status: string): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;

const read = (of: number | "self", file: string): string => readFileSync(`/proc/${of}/${file}`, "utf8");
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

export const cpu = (pids: readonly number[]): number => sum(pids.map((pid) => cpuOf(read(pid, "stat"))));
export const resident = (pids: readonly number[]): number => sum(pids.map((pid) => residentOf(read(pid, "status"))));
export const ownCpu = (): number => cpuOf(read("self", "stat"));
export const endedChildrenCpu = (): number => cpuOfEndedChildren(read("self", "stat"));
export const machineCpu = () => cpuOfMachine(readFileSync("/proc/stat", "utf8"));

/** The running child processes of a process. */
export const childrenOf = (pid: number): number[] =>
  read(pid, `task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);
