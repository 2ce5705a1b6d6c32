/**
 * Connect's protocol by `fetch`, in binary alone: in JSON an enum value would come by a name, and one that only a later version
 * knows would be lost. As @connectrpc/connect-web does it, without the JSON, which is a fifth of what a page would load.
 */
import { type DescMethod, fromBinary, toBinary } from "@bufbuild/protobuf";
import { appendHeaders, createContextValues, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  createEnvelopeReadableStream,
  createMethodUrl,
  encodeEnvelope,
  runStreamingCall,
  runUnaryCall,
} from "@connectrpc/connect/protocol";
import {
  endStreamFlag,
  endStreamFromJson,
  errorFromJson,
  requestHeader,
  trailerDemux,
  validateResponse,
} from "@connectrpc/connect/protocol-connect";

export interface GatewayOptions {
  /** Where the gateway is, such as "http://127.0.0.1:8080"; "" is where a page came from. */
  readonly baseUrl: string;
  /** In place of the global one. */
  readonly fetch?: typeof fetch | undefined;
  /** Of Connect, the outermost first. `petstore.watch`, which is no RPC, goes past them. */
  readonly interceptors?: Interceptor[] | undefined;
  readonly transport?: never;
}

export function createTransport({ baseUrl, fetch, interceptors }: GatewayOptions): Transport {
  async function post(method: DescMethod, url: string, headers: Headers, signal: AbortSignal, body: Uint8Array) {
    const init = { method: "POST", headers, signal, body: body as Uint8Array<ArrayBuffer>, redirect: "error" } as const;
    const response = await (fetch ?? globalThis.fetch)(url, init);
    return { response, ...validateResponse(method.methodKind, true, response.status, response.headers) };
  }
  const request = (method: DescMethod, timeoutMs: number | undefined, header: HeadersInit | undefined) => ({
    service: method.parent,
    requestMethod: "POST",
    url: createMethodUrl(baseUrl, method),
    header: requestHeader(method.methodKind, true, timeoutMs, header, false),
  });
  return {
    unary: (method, signal, timeoutMs, header, message, contextValues = createContextValues()) =>
      runUnaryCall({
        interceptors,
        signal,
        timeoutMs,
        req: { ...request(method, timeoutMs, header), stream: false, method, contextValues, message },
        async next({ url, header, signal, message }) {
          const sent = toBinary(method.input, message);
          const { response, isUnaryError, unaryError } = await post(method, url, header, signal, sent);
          const [headers, trailer] = trailerDemux(response.headers);
          if (isUnaryError) throw errorFromJson(await response.json(), appendHeaders(headers, trailer), unaryError);
          const answer = fromBinary(method.output, new Uint8Array(await response.arrayBuffer()));
          return { stream: false, service: method.parent, method, header: headers, trailer, message: answer };
        },
      }),
    stream: (method, signal, timeoutMs, header, messages, contextValues = createContextValues()) =>
      runStreamingCall({
        interceptors,
        signal,
        timeoutMs,
        req: { ...request(method, timeoutMs, header), stream: true, method, contextValues, message: messages },
        async next(asked) {
          const { value: message } = await asked.message[Symbol.asyncIterator]().next();
          const sent = encodeEnvelope(0, toBinary(method.input, message));
          const { response } = await post(method, asked.url, asked.header, asked.signal, sent);
          const { headers, body } = response;
          async function* answers() {
            // One that breaks off without an error has ended no less: whoever watches goes on by another one.
            for await (const { flags, data } of chunksOf(createEnvelopeReadableStream(body as ReadableStream))) {
              const { error } = (flags & endStreamFlag) !== 0 ? endStreamFromJson(data) : {};
              for (const [name, value] of headers) error?.metadata.append(name, value);
              if (error) throw error;
              if ((flags & endStreamFlag) === 0) yield fromBinary(method.output, data);
            }
          }
          return { ...asked, header: headers, trailer: new Headers(), message: answers() };
        },
      }),
  };
}

/** Safari can't iterate over a stream. */
export async function* chunksOf<T>(body: ReadableStream<T>): AsyncGenerator<T> {
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    void reader.cancel().catch(() => {});
  }
}
