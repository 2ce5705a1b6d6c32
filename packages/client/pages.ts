/** Reads lists page by page. */
import type { CallOptions } from "@connectrpc/connect";

interface Page {
  readonly nextPageToken: string;
}

/** A list of T by a filter F. Pages are requested as they are read: when the loop ends, no more are. */
export interface Paged<F, T> {
  /** Yields page by page; each is requested after the one before has been used. `limit` is the page size, 100 at most. */
  pages(filter?: F, options?: CallOptions): AsyncGenerator<readonly T[]>;
  /** Yields record by record. */
  all(filter?: F, options?: CallOptions): AsyncGenerator<T>;
}

/** Makes both ways to read a list from the RPC that returns one page of it (AIP-158). */
export function paged<F extends object, P extends Page, T>(
  list: (request: F & { readonly pageToken?: string }, options?: CallOptions) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): Paged<F, T> {
  async function* pages(filter?: F, options?: CallOptions): AsyncGenerator<readonly T[]> {
    let pageToken: string | undefined;
    do {
      const page = await list({ ...(filter as F), ...(pageToken && { pageToken }) }, options);
      yield itemsOf(page);
      pageToken = page.nextPageToken;
    } while (pageToken);
  }
  async function* all(filter?: F, options?: CallOptions): AsyncGenerator<T> {
    for await (const page of pages(filter, options)) yield* page;
  }
  return { pages, all };
}
