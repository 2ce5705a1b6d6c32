/** Serves batches of unary calls. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { excerpt } from "connect-transcoder/validation/excerpt";
import { SECRET_HEADER } from "../call.ts";
import { type BatchedCall, BatchService, type CallRequest } from "../gen/batching/v1/batch_service_pb.ts";
import type { Dispatcher } from "../server/dispatcher.ts";
import { MAX_MESSAGE_BYTES } from "../server/message-limit.ts";
import { createTurns } from "../server/turns.ts";
import { bytesOfFields, bytesOfText, MAX_BATCH_BYTES, MAX_BATCH_CALLS, parts, TAG_BYTES } from "./parts.ts";

interface Result {
  readonly outcome:
    | { readonly case: "message"; readonly value: Uint8Array }
    | {
        readonly case: "failure";
        readonly value: { readonly code: Code; readonly message: string; readonly details: Uint8Array[] };
      };
  readonly headers: { readonly name: string; readonly value: string }[];
}

const fields = (headers: Headers) => [...headers].map(([name, value]) => ({ name, value }));

/**
 * Serves batches: every call in one runs through the dispatcher exactly as if it had come alone, together with the
 * others, and is answered as soon as it is ready. Batches take turns, so that none keeps the process busy for long.
 */
export function batchRoutes(router: ConnectRouter, dispatcher: Dispatcher, turns = createTurns()): void {
  const { rpcError, system } = dispatcher.errors;
  async function* call({ calls }: CallRequest, context: HandlerContext) {
    if (!dispatcher.isTrusted(context.requestHeader))
      throw rpcError("PERMISSION_DENIED", `Batches are for ${system}'s own processes.`);
    if (calls.length > MAX_BATCH_CALLS)
      throw rpcError("VALIDATION_FAILED", `calls: at most ${MAX_BATCH_CALLS} in one batch`);
    const secret = context.requestHeader.get(SECRET_HEADER) ?? "";
    let ready: (Result & { readonly index: number })[] = [];
    let wake = () => {};
    let left = calls.length;
    for (const [index, call] of calls.entries())
      turns(calls, () =>
        run(dispatcher, call, secret).then((result) => {
          ready.push({ ...result, index });
          left--;
          wake();
        }),
      );
    while (left > 0 || ready.length > 0) {
      // What becomes ready in the same tick is sent together.
      if (ready.length === 0) await new Promise<void>((resolve) => (wake = () => setImmediate(resolve)));
      const results = ready;
      ready = [];
      for (const part of parts(results, bytesOf)) yield { results: part };
    }
  }
  router.service(BatchService, { call }, { writeMaxBytes: MAX_BATCH_BYTES });
}

async function run(dispatcher: Dispatcher, call: BatchedCall, secret: string): Promise<Result> {
  try {
    const method = dispatcher.find(call.method);
    if (!method) throw new ConnectError(`${excerpt(call.method)} is not implemented`, Code.Unimplemented);
    const headers = new Headers(call.headers.map(({ name, value }): [string, string] => [name, value]));
    headers.set(SECRET_HEADER, secret);
    const answer = await dispatcher.invoke(method, fromBinary(method.input, call.message), {
      headers,
      timeoutMs: call.timeoutMs || undefined,
    });
    const message = toBinary(method.output, answer.message);
    const result: Result = { outcome: { case: "message", value: message }, headers: fields(answer.headers) };
    // It would fail on its own too; here it must not fail the others.
    if (message.length > MAX_MESSAGE_BYTES || bytesOf(result) > MAX_BATCH_BYTES) throw tooLarge(message.length);
    return result;
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const result = failure(error);
    return bytesOf(result) > MAX_BATCH_BYTES ? failure(new ConnectError("too much to tell", error.code)) : result;
  }
}

const tooLarge = (bytes: number) =>
  new ConnectError(`an answer of ${bytes} bytes is larger than any message may be`, Code.ResourceExhausted);

const failure = ({ code, rawMessage: message, details, metadata }: ConnectError): Result => ({
  outcome: { case: "failure", value: { code, message, details: details.map(pack) } },
  headers: fields(metadata),
});

const bytesOf = ({ outcome, headers }: Result): number =>
  bytesOfFields(headers) +
  (outcome.case === "message"
    ? outcome.value.length
    : outcome.value.details.reduce(
        (sum, detail) => sum + TAG_BYTES + detail.length,
        bytesOfText(outcome.value.message),
      ));

function pack(detail: ConnectError["details"][number]): Uint8Array {
  const any =
    "desc" in detail
      ? { typeUrl: detail.desc.typeName, value: toBinary(detail.desc, create(detail.desc, detail.value)) }
      : { typeUrl: detail.type, value: detail.value };
  return toBinary(AnySchema, create(AnySchema, { ...any, typeUrl: `type.googleapis.com/${any.typeUrl}` }));
}
