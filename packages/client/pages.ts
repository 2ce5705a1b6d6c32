/** Lists, as far as they are read. */
import type { CallOptions } from "@connectrpc/connect";

interface Page {
  readonly nextPageToken: string;
}

/** A list of T by a filter F: whoever stops reading asks for no more pages. */
export interface Paged<F, T> {
  /** Page by page, each asked for when the one before has been used. `limit` is the size of a page, 100 at most. */
  pages(filter?: F, options?: CallOptions): AsyncGenerator<readonly T[]>;
  /** Record by record. */
  all(filter?: F, options?: CallOptions): AsyncGenerator<T>;
}

/** Both ways to read a list, from the RPC that answers one page of it (AIP-158). */
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
