import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import {
  type CallRequest,
  type CallResultSchema,
  type EnvelopedCall,
  EnvelopeService,
} from "#proto/petstore/internal/v1/envelope_service_pb.ts";
import { SECRET_HEADER } from "./call.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { MAX_CALLS } from "./envelope-client.ts";
import { fault } from "./fault.ts";

type Result = MessageInitShape<typeof CallResultSchema>;

const fields = (headers: Headers) => [...headers].map(([name, value]) => ({ name, value }));

/**
 * Serves envelopes: every call in one runs through the dispatcher exactly as if it had come alone, at once with the
 * others, and is answered as soon as it is ready.
 */
export function envelopeRoutes(router: ConnectRouter, dispatcher: Dispatcher): void {
  router.service(EnvelopeService, {
    async *call({ calls }: CallRequest, context: HandlerContext) {
      if (!dispatcher.isTrusted(context.requestHeader))
        throw fault("PERMISSION_DENIED", "Envelopes are for the petstore's own processes.");
      if (calls.length > MAX_CALLS) throw fault("VALIDATION_FAILED", `calls: at most ${MAX_CALLS} in one envelope`);
      const secret = context.requestHeader.get(SECRET_HEADER) ?? "";
      let ready: Result[] = [];
      let wake = () => {};
      let left = calls.length;
      for (const [index, call] of calls.entries())
        void run(dispatcher, call, secret).then((result) => {
          ready.push({ ...result, index });
          left--;
          wake();
        });
      while (left > 0 || ready.length > 0) {
        // What becomes ready in the same turn is sent together.
        if (ready.length === 0) await new Promise<void>((resolve) => (wake = () => setImmediate(resolve)));
        const results = ready;
        ready = [];
        if (results.length > 0) yield { results };
      }
    },
  });
}

async function run(dispatcher: Dispatcher, call: EnvelopedCall, secret: string): Promise<Result> {
  try {
    const method = dispatcher.find(call.method);
    if (!method) throw new ConnectError(`${call.method} is not implemented`, Code.Unimplemented);
    const headers = new Headers(call.headers.map(({ name, value }): [string, string] => [name, value]));
    headers.set(SECRET_HEADER, secret);
    const answer = await dispatcher.invoke(method, fromBinary(method.input, call.message), {
      headers,
      timeoutMs: call.timeoutMs || undefined,
    });
    const message = toBinary(method.output, answer.message);
    return { outcome: { case: "message", value: message }, headers: fields(answer.headers) };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const failure = { code: error.code, message: error.rawMessage, details: error.details.map(pack) };
    return { outcome: { case: "failure", value: failure }, headers: fields(error.metadata) };
  }
}

function pack(detail: ConnectError["details"][number]): Uint8Array {
  const any =
    "desc" in detail
      ? { typeUrl: detail.desc.typeName, value: toBinary(detail.desc, create(detail.desc, detail.value)) }
      : { typeUrl: detail.type, value: detail.value };
  return toBinary(AnySchema, create(AnySchema, { ...any, typeUrl: `type.googleapis.com/${any.typeUrl}` }));
}
