/** Headers as a link carries them: the two that every call has as fields of their own, the others by name. */
import { REQUEST_ID_HEADER } from "connect-transcoder/request/request-id";
import { CALLER_HEADER } from "../call.ts";

interface Field {
  readonly name: string;
  readonly value: string;
}

/** The headers of a call, as fields of the message `Call`. */
export interface CallHeaders {
  readonly requestId: string;
  readonly caller: string;
  readonly headers: Field[];
}

export const toFields = (headers: Headers): Field[] => [...headers].map(([name, value]) => ({ name, value }));

export function toHeaders(fields: readonly Field[]): Headers {
  const headers = new Headers();
  for (const { name, value } of fields) headers.append(name, value);
  return headers;
}

/** Most callers pass a plain object, and creating Headers from it would cost more than everything done with them. */
export function toCallHeaders(init: HeadersInit | undefined): CallHeaders {
  const all = { requestId: "", caller: "", headers: [] as Field[] };
  if (init === undefined) return all;
  const add = (name: string, value: string) => {
    if (name === REQUEST_ID_HEADER) all.requestId = value;
    else if (name === CALLER_HEADER) all.caller = value;
    else all.headers.push({ name, value });
  };
  if (Object.getPrototypeOf(init) === Object.prototype)
    for (const name of Object.keys(init)) add(name.toLowerCase(), `${(init as Record<string, string>)[name]}`);
  else new Headers(init).forEach((value, name) => void add(name, value));
  return all;
}

export function fromCallHeaders({ requestId, caller, headers }: CallHeaders): Headers {
  const all = toHeaders(headers);
  if (requestId !== "") all.set(REQUEST_ID_HEADER, requestId);
  if (caller !== "") all.set(CALLER_HEADER, caller);
  return all;
}
