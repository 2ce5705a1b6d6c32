/**
 * How many files a process may have open (`ulimit -n`), connections among them. When it has reached that limit, the system
 * resets new connections and Node tells nobody, so the limits of connections and streams have to be below it.
 */
import { ConfigError } from "@petstore/runtime/environment";

/** The least of MAX_CONNECTIONS. */
const FEWEST = 10;

/** What a process needs besides: files, the connections to other processes, and MongoDB's pools. */
const others = (openFiles: number): number => Math.max(64, Math.min(256, Math.floor(openFiles / 4)));

export interface SocketLimits {
  readonly MAX_CONNECTIONS: number;
  readonly MAX_CONNECTIONS_PER_ADDRESS: number | undefined;
  readonly MAX_STREAMS: number;
}

let known: number | undefined;

/**
 * The limit of this process, read once, for the report that holds it takes milliseconds. Infinity where there is none, or none
 * is known, as on Windows.
 */
export function openFilesLimit(): number {
  known ??= readLimit();
  return known;
}

function readLimit(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}

/**
 * The given limits, or lower ones in the same proportion where so many files can't be open, and a `warning` then. Throws
 * `ConfigError` where they would be too low to serve anybody.
 */
export function withinOpenFiles(limits: SocketLimits, openFiles: number): SocketLimits & { readonly warning?: string } {
  const { MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS, MAX_STREAMS } = limits;
  const wanted = MAX_CONNECTIONS + MAX_STREAMS;
  const room = openFiles - others(openFiles);
  if (wanted <= room) return limits;
  const part = (limit: number) => Math.max(1, Math.floor((limit * room) / wanted));
  const lowered = {
    MAX_CONNECTIONS: part(MAX_CONNECTIONS),
    MAX_CONNECTIONS_PER_ADDRESS: MAX_CONNECTIONS_PER_ADDRESS && part(MAX_CONNECTIONS_PER_ADDRESS),
    MAX_STREAMS: part(MAX_STREAMS),
  };
  const enough = wanted + others(Number.POSITIVE_INFINITY);
  const problem = `This process may have ${openFiles} files open (ulimit -n), too few for MAX_CONNECTIONS=${MAX_CONNECTIONS} and MAX_STREAMS=${MAX_STREAMS}`;
  const advice = `raise it to ${enough} (\`ulimit -n ${enough}\`, or LimitNOFILE in a unit of systemd), or lower these settings.`;
  if (lowered.MAX_CONNECTIONS < FEWEST) throw new ConfigError([`${problem}: ${advice}`]);
  return {
    ...lowered,
    warning: `${problem}: it takes ${lowered.MAX_CONNECTIONS} connections and ${lowered.MAX_STREAMS} streams. For more, ${advice}`,
  };
}
