/** The service that the conformance suite calls: it responds as a request asks, and reports what it received. */
import { setTimeout as sleep } from "node:timers/promises";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { fromAny, RpcError } from "../errors.ts";
import type {
  AnyAnswer,
  Contract,
  ErrorAnswer,
  Header,
  ManyAnswers,
  OneAnswer,
  Request,
  RequestInfo,
} from "./contract.ts";

type Requests<A> = AsyncIterable<Request<A>> | Iterable<Request<A>>;

/** Its two ways to answer, as the first request asks: with one message, or with a stream of messages. */
export function createAnswers({ requestInfo: requestInfoSchema }: Contract) {
  async function answerOnce(method: DescMethod, requests: Requests<OneAnswer>, context: HandlerContext) {
    const all: Request<OneAnswer>[] = [];
    for await (const request of requests) all.push(request);
    const asked = all[0]?.responseDefinition;
    const requestInfo = infoOf(method, all, context);
    setMetadata(asked, context);
    await sleep(asked?.responseDelayMs);
    if (asked?.response.case === "error") throw failure(asked.response.value, requestInfo);
    return create(method.output, { payload: { data: asked?.response.value, requestInfo } });
  }

  /** A full-duplex call gets one message per request, as long as there are any; the rest follows when all have arrived. */
  async function* answerMany(method: DescMethod, requests: Requests<ManyAnswers>, context: HandlerContext) {
    let first: Request<ManyAnswers> | undefined;
    let news: Request<ManyAnswers>[] = [];
    let sent = 0;
    const isLeft = () => sent < (first?.responseDefinition?.responseData.length ?? 0);
    const next = async () => {
      await sleep(first?.responseDefinition?.responseDelayMs);
      const data = first?.responseDefinition?.responseData[sent];
      const later = news.length > 0 ? { requests: packed(method, news) } : undefined;
      const requestInfo = sent === 0 ? infoOf(method, news, context) : later;
      sent++;
      news = [];
      return create(method.output, { payload: { data, requestInfo } });
    };

    for await (const request of requests) {
      if (!first) setMetadata(request.responseDefinition, context);
      first ??= request;
      news.push(request);
      if (!first.fullDuplex) continue;
      if (!isLeft()) break;
      yield await next();
    }
    while (isLeft()) yield await next();
    const error = first?.responseDefinition?.error;
    if (error) throw failure(error, sent === 0 ? infoOf(method, news, context) : undefined);
  }

  function failure({ code, message = "", details }: ErrorAnswer, info: RequestInfo | undefined): RpcError {
    const error = new RpcError(message, code);
    error.details.push(...details.map(fromAny));
    if (info) error.details.push({ desc: requestInfoSchema, value: { ...info } });
    return error;
  }

  return { answerOnce, answerMany };
}

function setMetadata(asked: AnyAnswer | undefined, { responseHeader, responseTrailer }: HandlerContext): void {
  const { responseHeaders = [], responseTrailers = [] } = asked ?? {};
  for (const { name, value } of responseHeaders) for (const one of value) responseHeader.append(name, one);
  for (const { name, value } of responseTrailers) for (const one of value) responseTrailer.append(name, one);
}

function infoOf(method: DescMethod, requests: readonly Request<unknown>[], context: HandlerContext): RequestInfo {
  const timeoutMs = context.timeoutMs();
  return {
    requestHeaders: toHeaders(context.requestHeader),
    timeoutMs: timeoutMs === undefined ? undefined : BigInt(Math.round(timeoutMs)),
    requests: packed(method, requests),
    connectGetInfo:
      context.requestMethod === "GET" ? { queryParams: toHeaders(new URL(context.url).searchParams) } : undefined,
  };
}

const packed = ({ input }: DescMethod, requests: readonly Request<unknown>[]) =>
  requests.map((request) => anyPack(input, request));

const toHeaders = (fields: Iterable<[string, string]>): Header[] =>
  [...fields].map(([name, value]) => ({ name, value: [value] }));
