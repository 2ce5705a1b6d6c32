/** Which requests are answered with one record, as it is by itself. */
import { isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Operation } from "./operations.ts";

/** Parameters of lists that filter nothing, by the names that they have everywhere (AIP-132, AIP-158). */
const NO_FILTERS: readonly string[] = ["page_token", "page_size", "limit", "order_by"];

/** Compiles the decision. A list with an id filter has to be asked for one record; others never are. */
export function asksForOne({ idFilter, query, record }: Operation): (request: Message) => boolean {
  if (!idFilter) return () => record !== undefined;
  const others = query.filter((field) => field !== idFilter && !NO_FILTERS.includes(field.name));
  return (request) => {
    const ids = (request as unknown as Record<string, readonly unknown[]>)[idFilter.localName];
    return ids?.length === 1 && !others.some((field) => isFieldSet(request, field));
  };
}
