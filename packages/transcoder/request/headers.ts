/** Request headers that operations understand, whatever their fields are. */
import type { IncomingHttpHeaders } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operation.ts";

type Value = string | string[] | undefined;

/** The key: the text of a string of RFC 8941 (3.3.3), as the draft of the header has it, or else the value as it was sent. */
export const idempotencyKey = (value: string): string =>
  /^"(?:[^"\\]|\\["\\])*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;

const QUOTED = /"(?:[^"\\]|\\.)*"?/g;

/** Whether the caller prefers `handling=strict` (RFC 7240). Of a preference given twice the first counts. */
export function prefersStrict(value: Value): boolean {
  if (value === undefined) return false;
  const handling = String(value)
    .replaceAll(QUOTED, (quoted) => quoted.replaceAll(",", "_"))
    .split(",")
    .map((preference) => /^\s*handling\s*=\s*"?(\w+)"?\s*(;|$)/i.exec(preference)?.[1]?.toLowerCase())
    .find((found) => found !== undefined);
  return handling === "strict";
}

/**
 * Where a reader of events goes on that reconnects by itself (WHATWG HTML, 9.2.4). It sends its first query again, which may say
 * where it began, so the header wins.
 */
export const LAST_EVENT_ID = "Last-Event-ID";

/** Empty is absent, as with an EventSource that has seen no id yet. Browsers encode it as UTF-8, and node reads bytes. */
const idIn = (headers: IncomingHttpHeaders): string =>
  Buffer.from(String(headers["last-event-id"] ?? ""), "latin1").toString();

export function resumeReader({ stream }: Operation): (headers: IncomingHttpHeaders, message: Message) => void {
  const resume = stream?.resume;
  if (!resume) return () => {};
  return (headers, message) => {
    const id = idIn(headers);
    if (id !== "") (message as unknown as Record<string, unknown>)[resume.localName] = id;
  };
}

/** The operation as a request sees it: with the header, the field that it fills is in a header and not in the query. */
export function operationFor(operation: Operation): (headers: IncomingHttpHeaders) => Operation {
  const field = operation.stream?.resume;
  if (!field) return () => operation;
  const requestHeaders = [...operation.requestHeaders, { name: LAST_EVENT_ID, field }];
  const resumed = { ...operation, requestHeaders };
  return (headers) => (idIn(headers) === "" ? operation : resumed);
}

/** Whether what is unknown in a request is an error: where it is not ignored, and where the caller prefers it (`Prefer`). */
export const isStrict = (prefer: Value, ignoreUnknown = false): boolean => !ignoreUnknown || prefersStrict(prefer);
