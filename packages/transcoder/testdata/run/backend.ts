/** A service of any contract: it keeps what it gets, and says what it was told to. */
import {
  type DescMessage,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { detailTypes } from "../../errors/forms.ts";
import type { Answer } from "./case.ts";
import { servicesOf } from "./contract.ts";

/** One call as the service saw it. */
export interface Call {
  /** "package.Service/Method". */
  readonly method: string;
  /** In proto3 JSON. */
  readonly messages: readonly JsonValue[];
  readonly headers: Readonly<Record<string, string>>;
}

export interface Backend {
  /** Forgets what was before. */
  readonly prepare: (answer: Answer) => Promise<void>;
  readonly calls: () => Promise<readonly Call[]>;
}

/** What an Any of the contract may hold. */
export const typesOf = (contract: FileRegistry): Registry => detailTypes([...contract.files]);

export function genericBackend(contract: FileRegistry): Backend & { readonly routes: (router: ConnectRouter) => void } {
  const registry = typesOf(contract);
  let answer: Answer = {};
  let calls: Call[] = [];

  async function* respond(method: DescMethod, requests: AsyncIterable<Message>, context: HandlerContext) {
    const messages: JsonValue[] = [];
    // Kept from the start: a call that is refused in the midst of its stream was one.
    calls.push({
      method: `${method.parent.typeName}/${method.name}`,
      messages,
      headers: Object.fromEntries(context.requestHeader),
    });
    for await (const message of requests) messages.push(toJson(method.input, message, { registry }));
    for (const [name, value] of Object.entries(answer.headers ?? {})) context.responseHeader.append(name, value);
    for (const [name, value] of Object.entries(answer.trailers ?? {})) context.responseTrailer.append(name, value);
    for (const message of answer.messages ?? []) yield messageOf(method.output, message);
    if (answer.hangs) throw await aborted(context.signal);
    if (answer.error) throw errorOf(answer);
  }
  const messageOf = (desc: DescMessage, json: JsonValue): Message => fromJson(desc, json, { registry });
  // The metadata of the context comes with an error, too.
  const errorOf = ({ error }: Answer): ConnectError => {
    const failure = new ConnectError(error?.message ?? "", error?.code as Code);
    failure.details = (error?.details ?? []).map((detail) => detailOf(detail, registry));
    return failure;
  };

  return {
    async prepare(given) {
      answer = given;
      calls = [];
    },
    calls: async () => calls,
    routes(router) {
      for (const service of servicesOf(contract))
        router.service(
          service,
          Object.fromEntries(service.methods.map((method) => [method.localName, implementation(method)])) as never,
        );
    },
  };

  function implementation(method: DescMethod) {
    const takesMany = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
    const all = (request: Message | AsyncIterable<Message>, context: HandlerContext) =>
      respond(method, takesMany ? (request as AsyncIterable<Message>) : only(request as Message), context);
    if (method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming") return all;
    return async (request: Message, context: HandlerContext) => {
      let last = messageOf(method.output, answerless(method.output));
      for await (const message of all(request, context)) last = message;
      return last;
    };
  }
}

/** Empty, as JSON: of a wrapper or another well-known type that is not an object there. */
const EMPTY: Readonly<Record<string, JsonValue>> = {
  "google.protobuf.ListValue": [],
  "google.protobuf.Value": null,
  "google.protobuf.FieldMask": "",
  "google.protobuf.Duration": "0s",
  "google.protobuf.Timestamp": "1970-01-01T00:00:00Z",
  "google.protobuf.StringValue": "",
  "google.protobuf.BytesValue": "",
  "google.protobuf.BoolValue": false,
};
const answerless = ({ typeName }: DescMessage): JsonValue =>
  EMPTY[typeName] ?? (/^google\.protobuf\.\w+Value$/.test(typeName) ? 0 : {});

async function* only(message: Message) {
  yield message;
}

/** Resolves with the reason. A service that hangs may see the deadline before its caller does: then it must not answer. */
const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

/** A detail of a type that the registry lacks is `{"@type", "value"}`, its bytes in base64. */
function detailOf(detail: JsonValue, registry: Registry) {
  const { "@type": url, value } = detail as { "@type": string; value: string };
  const type = url.slice(url.lastIndexOf("/") + 1);
  if (!registry.getMessage(type)) return { type, value: Buffer.from(value, "base64") };
  const any = fromJson(AnySchema, detail, { registry });
  fromBinary(registry.getMessage(type) as DescMessage, any.value);
  return { type, value: any.value };
}
