/** Calls made in one tick of the event loop travel together. */
import { create, type DescMethodUnary, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport, type UnaryResponse } from "@connectrpc/connect";
import type { CallLimit } from "../client/call-limit.ts";
import {
  type BatchedCall,
  BatchedCallSchema,
  BatchService,
  type CallResult,
} from "../gen/batching/v1/batch_service_pb.ts";
import { bytesOfFields, bytesOfText, parts } from "./parts.ts";

/** A message of this size gains nothing from company. */
const BIG = 32 * 1024;

interface Waiting {
  readonly method: DescMethodUnary;
  readonly call: BatchedCall;
  readonly timeoutMs: number | undefined;
  readonly settle: (outcome: CallResult | ConnectError) => void;
  readonly alone: () => void;
  isDone(): boolean;
}

/**
 * Wraps a transport so that the unary calls of one tick go to the service's BatchService as one streaming RPC, each
 * with its own headers and time limit, each answered as soon as it is ready. A call that is alone in its tick, or big,
 * goes as a plain RPC. A service without an BatchService gets plain RPCs. All of them count towards the limit.
 */
export function withBatching(transport: Transport, limit: CallLimit): Transport {
  const client = createClient(BatchService, transport);
  let queue: Waiting[] = [];
  let refused = false;

  function flush(): void {
    const taken = queue.filter((waiting) => !waiting.isDone());
    queue = [];
    if (taken.length === 1 || refused) for (const waiting of taken) waiting.alone();
    else for (const part of parts(taken, bytesOf)) void send(part);
  }

  async function send(part: readonly Waiting[]): Promise<void> {
    const open = new Set(part);
    const abort = new AbortController();
    const limits = part.map(({ timeoutMs }) => timeoutMs);
    // Each call has its own limit here and at the service; this one only ends a stream that nobody waits for.
    const timeoutMs = limits.includes(undefined) ? undefined : Math.max(...(limits as number[])) + 1000;
    const watch = setInterval(() => part.every((waiting) => waiting.isDone()) && abort.abort(), 100);
    try {
      const options = { signal: abort.signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
      for await (const { results } of client.call({ calls: part.map(({ call }) => call) }, options)) {
        for (const result of results) {
          const waiting = part[result.index];
          if (!waiting || !open.delete(waiting)) throw new ConnectError("an answer to no call", Code.Internal);
          waiting.settle(result);
        }
      }
      throw new ConnectError("the batch ended without this answer", Code.Unavailable);
    } catch (thrown) {
      const error = ConnectError.from(thrown);
      // Nothing ran: the service is another one than we thought.
      if (error.code === Code.Unimplemented) {
        refused = true;
        for (const waiting of open) waiting.alone();
      } else for (const waiting of open) waiting.settle(error);
    } finally {
      clearInterval(watch);
    }
  }

  return {
    stream: transport.stream,
    async unary(method, signal, timeoutMs, init, input, contextValues) {
      const message = ("$typeName" in input ? input : create(method.input, input)) as Message;
      const plain = () => transport.unary(method, signal, timeoutMs, init, input, contextValues);
      const bytes = toBinary(method.input, message as never);
      const leave = limit.enter(bytes.length);
      if (refused || bytes.length > BIG) return plain().finally(leave);
      return new Promise<UnaryResponse<never, never>>((resolve, reject) => {
        let done = false;
        const finish = (how: () => void) => {
          if (done) return;
          done = true;
          leave();
          clearTimeout(timer);
          signal?.removeEventListener("abort", cancel);
          how();
        };
        const cancel = () => finish(() => reject(ConnectError.from(signal?.reason, Code.Canceled)));
        const late = () => finish(() => reject(new ConnectError("the operation timed out", Code.DeadlineExceeded)));
        const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
        signal?.addEventListener("abort", cancel);
        const waiting: Waiting = {
          method,
          timeoutMs,
          call: create(BatchedCallSchema, {
            method: `${method.parent.typeName}/${method.name}`,
            message: bytes,
            timeoutMs: timeoutMs === undefined ? 0 : Math.ceil(timeoutMs),
            headers: [...new Headers(init)].map(([name, value]) => ({ name, value })),
          }),
          settle: (outcome) =>
            finish(() => {
              if (outcome instanceof ConnectError) return reject(outcome);
              try {
                resolve(answer(method, outcome) as never);
              } catch (error) {
                reject(ConnectError.from(error));
              }
            }),
          alone: () =>
            void plain().then(
              (response) => finish(() => resolve(response as never)),
              (error) => finish(() => reject(error)),
            ),
          isDone: () => done,
        };
        if (signal?.aborted) cancel();
        else if (queue.push(waiting) === 1) setImmediate(flush);
      }) as never;
    },
  };
}

const bytesOf = ({ call: { method, message, headers } }: Waiting): number =>
  bytesOfText(method) + message.length + bytesOfFields(headers);

const toHeaders = (fields: CallResult["headers"]): Headers => {
  const headers = new Headers();
  for (const { name, value } of fields) headers.append(name, value);
  return headers;
};

function answer(method: DescMethodUnary, { outcome, headers, trailers }: CallResult): UnaryResponse {
  if (outcome.case === "failure") {
    const error = new ConnectError(outcome.value.message, outcome.value.code, toHeaders(headers));
    error.details = outcome.value.details.map((bytes) => {
      const { typeUrl, value } = fromBinary(AnySchema, bytes);
      return { type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value };
    });
    throw error;
  }
  if (outcome.case !== "message") throw new ConnectError("an answer without an outcome", Code.Internal);
  return {
    stream: false,
    service: method.parent,
    method,
    header: toHeaders(headers),
    trailer: toHeaders(trailers),
    message: fromBinary(method.output, outcome.value),
  };
}
