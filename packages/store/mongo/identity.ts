/** Which database a service has, and whether this version can use it. */

/**
 * Goes up when what is stored changes so that another version could no longer read it.
 * 2: the log of operations is called `_operations`.
 * 3: orders are stored once their units are reserved; idempotency keys hold no contents.
 */
export const FORMAT = 3;
/** Of a database that is being filled. No petstore starts with it. */
export const FILLING = 0;

/** Why a database of this format can't be used; undefined if it can. */
export function formatProblem(database: string, format: number): string | undefined {
  if (format === FORMAT) return undefined;
  if (format === FILLING)
    return `The database ${database} is being filled by npm run data, or that was cut short: give the same command again.`;
  return `The database ${database} was written by ${
    format > FORMAT
      ? "a newer petstore: upgrade this one."
      : "an older petstore, in a format that this one does not read: name another database in the connection string."
  }`;
}

/** How a process of a version tells MongoDB which databases it works with, such as "petstore/1.0.0 petstore_*". */
export const appName = (uri: string, version: string): string => `petstore/${version} ${databaseName(uri, "*")}`;

/** `<database of the URI, or petstore>_<service>` */
export function databaseName(uri: string, service: string): string {
  const [, database = "petstore"] = /^[^/]*\/\/[^/?]*\/([^?]+)/.exec(uri) ?? [];
  return `${decodeURIComponent(database)}_${service}`;
}
