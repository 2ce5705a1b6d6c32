/**
 * What a request can only be given while it is sent: a key, and the id of an order that the peer has answered. `wrk.lua` does
 * the same.
 *
 * The newest order is the one that is read. The oldest is the one that is settled, once `spare` others are younger: by then no
 * other request is under way for it.
 */
import { ORDER_ID, type Request } from "./workloads.ts";

export interface Sent extends Pick<Request, "method" | "path" | "body"> {
  readonly headers: Record<string, string>;
}

/** `prefix` begins all keys. A peer must never have seen it before. */
export function createKnownOrders(prefix: string, spare: number) {
  const open: number[] = [];
  let keys = 0;
  return {
    /** The request as it is sent now; undefined if no order is known for it. */
    fill({ method, path, body, key, settles }: Request): Sent | undefined {
      const asksForOne = path.includes(ORDER_ID);
      if (asksForOne && open.length <= (settles ? spare : 0)) return undefined;
      const id = settles ? open.shift() : open.at(-1);
      if (key === "new") keys++;
      return {
        method,
        path: asksForOne ? path.replace(ORDER_ID, `${id}`) : path,
        headers: {
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(key === undefined ? {} : { "idempotency-key": `${prefix}-${keys}` }),
        },
        ...(body === undefined ? {} : { body }),
      };
    },
    answered(status: number, body: string): void {
      if (status === 201) open.push((JSON.parse(body) as { id: number }).id);
    },
  };
}
