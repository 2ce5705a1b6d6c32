/**
 * Checks that all peers give the same answers. This comes before any measurement: a fast answer to another question proves
 * nothing.
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { seededRandom } from "@petstore/runtime/clock";
import { createKnownOrders, type Sent } from "../load/known-orders.ts";
import { type Request, workloads } from "../load/workloads.ts";

export interface Answer {
  readonly status: number;
  /** Parsed JSON. */
  readonly body: unknown;
  /** Whether another page is announced. */
  readonly hasNext: boolean;
}

export interface Asked {
  readonly request: Request;
  readonly answer: Answer;
}

const EACH = 40;

/** Requests of each workload by its name, and under an empty name what else is asked of every peer. */
export function questions(pets: number, seed: number): ReadonlyMap<string, readonly Request[]> {
  const random = seededRandom(seed);
  const some = workloads.map((workload): [string, Request[]] => {
    const requests = Array.from({ length: EACH }, () => workload.request(pets, random));
    return [workload.name, requests.flatMap(again)];
  });
  return new Map([
    ...some,
    [
      "",
      [
        { method: "GET", path: `/pets/${pets + 1}` },
        { method: "GET", path: "/pets/1.5" },
      ],
    ],
  ]);
}

/** A request with a key is sent again, and then with another body. */
const again = (request: Request): Request[] =>
  request.key === undefined
    ? [request]
    : [request, { ...request, key: "again" }, { ...request, key: "again", body: '{"petId":1,"quantity":2}' }];

/** Asks one after the other, for what is asked later may depend on what was answered. */
export async function ask(url: string, requests: readonly Request[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  const known = createKnownOrders(randomUUID(), 0);
  for (const request of requests) {
    const sent = known.fill(request);
    if (!sent) continue;
    const { answer, next } = await send(url, sent);
    known.answered(answer.status, JSON.stringify(answer.body));
    asked.push({ request, answer });
    if (next)
      asked.push({ request: { method: "GET", path: `${request.path}, next` }, answer: (await send(url, next)).answer });
  }
  return asked;
}

async function send(url: string, { method, path, body, headers }: Sent) {
  const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) });
  const next = /<([^>]+)>;\s*rel="?next"?/.exec(response.headers.get("link") ?? "")?.[1];
  const text = await response.text();
  const answer = { status: response.status, body: text && JSON.parse(text), hasNext: next !== undefined };
  return { answer, next: next === undefined ? undefined : ({ method: "GET", path: next, headers: {} } as const) };
}

/** The answer without what may differ: the ids of orders, and the texts of an error. */
function comparable({ request: { path }, answer: { status, body, hasNext } }: Asked): Answer {
  if (status >= 400) return { status, body: Object.keys(body as object).sort(), hasNext };
  const anonymous = (record: unknown) => {
    const { id } = record as { id: unknown };
    return { ...(record as object), id: typeof id };
  };
  if (!path.startsWith("/store/orders") || !body) return { status, body, hasNext };
  return { status, body: Array.isArray(body) ? body.map(anonymous) : anonymous(body), hasNext };
}

/** Describes the first difference between two peers; undefined if there is none. */
export function difference(
  one: { readonly name: string; readonly asked: readonly Asked[] },
  other: { readonly name: string; readonly asked: readonly Asked[] },
): string | undefined {
  const length = Math.max(one.asked.length, other.asked.length);
  for (let i = 0; i < length; i++) {
    const [a, b] = [one.asked[i], other.asked[i]];
    if (a && b && isDeepStrictEqual(comparable(a), comparable(b))) continue;
    const request = (a ?? b)?.request;
    const told = ({ name }: { name: string }, asked: Asked | undefined) => `${name}: ${JSON.stringify(asked?.answer)}`;
    return `${request?.method} ${request?.path} is answered differently.\n${told(one, a)}\n${told(other, b)}`;
  }
  return undefined;
}
