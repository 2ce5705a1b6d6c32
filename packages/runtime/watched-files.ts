/** Files that are read again while a process runs. If they can't be used, what was read before stays in force. */
import { readFile } from "node:fs/promises";
import { every, type Runtime } from "./clock.ts";

/**
 * How often the files are read, in milliseconds (up to a quarter more): a change takes effect within a second. A problem is
 * logged when two looks in a row have found it.
 */
const LOOK_MS = 500;

export interface WatchOptions<T> extends Pick<Runtime, "log" | "sleep" | "random"> {
  /** For the log, in few words such as "api-keys". */
  readonly name: string;
  /** Throws when they can't be used; the message says why, and quotes nothing secret. */
  readonly parse: (texts: readonly string[]) => T;
  /** Members for the log that describe what was read. */
  readonly describe: (value: T) => object;
  /** Log messages for files that were read again, and for files that can't be used. */
  readonly said: { readonly again: string; readonly unusable: string };
}

export type Watched<T> = Awaited<ReturnType<typeof watchFiles<T>>>;

/** The text of a file in UTF-8, without the byte order mark that some editors begin every file with. */
export const readText = async (path: string): Promise<string> => new TextDecoder().decode(await readFile(path));

/**
 * Opens files that belong together: a change takes effect once all of them can be used. Their contents are compared, so
 * that a directory may be exchanged behind a symbolic link. Rejects when they can't be used now, see `problemOf`.
 */
export async function watchFiles<T>(
  paths: readonly string[],
  { name, parse, describe, said, log, ...time }: WatchOptions<T>,
) {
  // One after the other: of several files that can't be read, the same one is named each time.
  const read = () => Array.fromAsync(paths, readText);
  const listeners: ((value: T) => void)[] = [];
  let texts = await read();
  let value = parse(texts);
  /** What the last look found wrong, and what was logged of it. */
  let problem: string | undefined;
  let logged: string | undefined;

  /** Reads the files now, which also happens by itself. Never rejects. */
  async function reload(): Promise<void> {
    try {
      const found = await read();
      const isChanged = found.some((text, i) => text !== texts[i]);
      if (isChanged) {
        value = parse(found);
        texts = found;
        for (const take of listeners) take(value);
      }
      if (isChanged || logged !== undefined) log.info({ paths, ...describe(value) }, said.again);
      problem = logged = undefined;
    } catch (err) {
      const found = problemOf(err, paths);
      // Files are replaced one after the other, so a look in between may find some that don't go together.
      if (found === problem && found !== logged) {
        log.error({ paths, problem: found }, said.unusable);
        logged = found;
      }
      problem = found;
    }
  }

  return {
    ...every(LOOK_MS, name, reload, { log, ...time }),
    current: () => value,
    /** Calls `take` with the new value whenever it has changed. */
    onChange: (take: (value: T) => void): void => void listeners.push(take),
    reload,
  };
}

/**
 * Why files can't be used, in words that follow "can't be used: ". One of several is named by its position. Its path is
 * not quoted: by mistake it may be the private key itself.
 */
export function problemOf(error: unknown, paths: readonly string[]): string {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if (path === undefined) return message;
  const which = paths.length > 1 ? `${ORDINALS[paths.indexOf(path)]}: ` : "";
  if (code === "ENAMETOOLONG" || LIKE_CONTENT.test(path))
    return `${which}it has to be the path of a file, and looks like what belongs into one`;
  return `${which}${code === "ENOENT" ? "there is no such file" : code}`;
}

const ORDINALS = ["the first", "the second", "the third"];
/** Signs of a file's content instead of its path: line breaks, real or escaped, or the dashes of PEM. */
const LIKE_CONTENT = /\n|\\n|-----/;
