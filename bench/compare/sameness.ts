/**
 * Checks that all peers give the same answers. This comes before any measurement: a fast answer to another question proves
 * nothing.
 */
import { isDeepStrictEqual } from "node:util";
import { seededRandom } from "../../packages/runtime/fixtures/random.ts";
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

/** Requests of each workload, and for pets that do not exist. */
export function questions(pets: number, seed: number): Request[] {
  const random = seededRandom(seed);
  const some = workloads.flatMap((workload) => Array.from({ length: EACH }, () => workload.request(pets, random)));
  return [...some, { method: "GET", path: `/pets/${pets + 1}` }, { method: "GET", path: "/pets/1.5" }];
}

export async function ask(url: string, requests: readonly Request[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (const request of requests) {
    const { answer, next } = await send(url, request);
    asked.push({ request, answer });
    if (next)
      asked.push({ request: { method: "GET", path: `${request.path}, next` }, answer: (await send(url, next)).answer });
  }
  return asked;
}

async function send(url: string, { method, path, body }: Request) {
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) });
  const next = /<([^>]+)>;\s*rel="?next"?/.exec(response.headers.get("link") ?? "")?.[1];
  const answer = { status: response.status, body: await response.json(), hasNext: next !== undefined };
  return { answer, next: next === undefined ? undefined : ({ method: "GET", path: next } as const) };
}

/** The answer without what may differ: the id of a new order, and the texts of an error. */
function comparable({ status, body, hasNext }: Answer): Answer {
  const known = body as Record<string, unknown>;
  if (status >= 400) return { status, body: Object.keys(known).sort(), hasNext };
  return { status, body: status === 201 ? { ...known, id: typeof known.id } : body, hasNext };
}

/** Describes the first difference between two peers; undefined if there is none. */
export function difference(
  one: { readonly name: string; readonly asked: readonly Asked[] },
  other: { readonly name: string; readonly asked: readonly Asked[] },
): string | undefined {
  const length = Math.max(one.asked.length, other.asked.length);
  for (let i = 0; i < length; i++) {
    const [a, b] = [one.asked[i], other.asked[i]];
    if (a && b && isDeepStrictEqual(comparable(a.answer), comparable(b.answer))) continue;
    const request = (a ?? b)?.request;
    const told = ({ name }: { name: string }, asked: Asked | undefined) => `${name}: ${JSON.stringify(asked?.answer)}`;
    return `${request?.method} ${request?.path} is answered differently.\n${told(one, a)}\n${told(other, b)}`;
  }
  return undefined;
}
