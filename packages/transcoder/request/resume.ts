/**
 * Where a reader of events goes on that reconnects by itself (WHATWG HTML, 9.2.4): in the header Last-Event-ID. It sends its
 * first query again, which may say where it began, so the header wins.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operations.ts";

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
