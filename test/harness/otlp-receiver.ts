/** An OTLP receiver in a few lines: it takes spans as protobuf over HTTP, and keeps them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** The members of opentelemetry.proto.trace.v1.Span that tests look at. */
export interface ReceivedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentId: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly hasFailed: boolean;
}

export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** The headers of the requests. */
  readonly requests: readonly NodeJS.Dict<string | string[]>[];
}

/** `keeps` says which spans are kept, by default all. */
export async function startOtlpReceiver(keeps: (span: ReceivedSpan) => boolean = () => true): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: NodeJS.Dict<string | string[]>[] = [];
  const server = createServer(async (request, response) => {
    requests.push({ ...request.headers, path: request.url });
    spans.push(...spansIn(await buffer(request)).filter(keeps));
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Fields = ReadonlyMap<number, readonly (Uint8Array | number | bigint)[]>;

/** The fields of a message by number. */
function fieldsOf(bytes: Uint8Array): Fields {
  const fields = new Map<number, (Uint8Array | number | bigint)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const values = fields.get(number) ?? [];
    fields.set(number, values);
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(reader.int64() as bigint);
    else if (type === WireType.Bit64) values.push(reader.fixed64() as bigint);
    else values.push(reader.fixed32());
  }
  return fields;
}

const messages = (fields: Fields, number: number) =>
  (fields.get(number) ?? []).map((one) => fieldsOf(one as Uint8Array));
const text = (fields: Fields, number: number) => Buffer.from((fields.get(number)?.[0] ?? "") as Uint8Array).toString();
const hex = (fields: Fields, number: number) =>
  Buffer.from((fields.get(number)?.[0] ?? "") as Uint8Array).toString("hex");

/** Of KeyValue messages, with values that are texts or integers. */
const attributesIn = (fields: Fields, number: number) =>
  Object.fromEntries(
    messages(fields, number).map((pair) => {
      const [value = new Map()] = messages(pair, 2);
      return [text(pair, 1), value.has(1) ? text(value, 1) : Number(value.get(3)?.[0])];
    }),
  );

/** Of an ExportTraceServiceRequest. */
const spansIn = (bytes: Uint8Array): ReceivedSpan[] =>
  messages(fieldsOf(bytes), 1).flatMap((resourceSpans) => {
    const [resource = new Map()] = messages(resourceSpans, 1);
    const service = `${attributesIn(resource, 1)["service.name"]}`;
    return messages(resourceSpans, 2)
      .flatMap((scopeSpans) => messages(scopeSpans, 2))
      .map((span) => ({
        service,
        name: text(span, 5),
        traceId: hex(span, 1),
        spanId: hex(span, 2),
        parentId: hex(span, 4),
        attributes: attributesIn(span, 9),
        links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
        hasFailed: messages(span, 15).some((status) => Number(status.get(3)?.[0]) === 2),
      }));
  });

/** A trace as lines, each span below its parent, children by name. */
export function treeOf(spans: readonly ReceivedSpan[], traceId: string): string[] {
  const all = spans.filter((span) => span.traceId === traceId);
  const ids = new Set(all.map(({ spanId }) => spanId));
  const below = (isChild: (span: ReceivedSpan) => boolean, indent: string): string[] =>
    all
      .filter(isChild)
      .map((span) => [`${indent}${span.name}`, ...below(({ parentId }) => parentId === span.spanId, `${indent}  `)])
      .toSorted((a, b) => (a.join("\n") < b.join("\n") ? -1 : 1))
      .flat();
  return below(({ parentId }) => !ids.has(parentId), "");
}
