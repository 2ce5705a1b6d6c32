/** A rule of the API as data: one call in its HTTP and its RPC form, and the answer of each endpoint. */
import type { DescMethodUnary, JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import type { Reason } from "../../../services/records/errors.ts";
import type { Shop } from "./shop.ts";

export interface HttpCall {
  readonly method: string;
  /** As sent, with the query. */
  readonly path: string;
  /** A list is sent as several header lines. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Text and bytes are sent unchanged, anything else as JSON. The type is application/json unless `headers` has one. */
  readonly body?: unknown;
}

export interface RpcCall {
  readonly method: DescMethodUnary;
  readonly request: object;
}

export interface HttpAnswer {
  readonly status: number;
  /** The headers to check; null means that the header must be absent. */
  readonly headers?: Readonly<Record<string, unknown>>;
  /** Undefined means that there is no body. */
  readonly body?: unknown;
}

export interface RpcAnswer {
  /** The whole answer as proto3 JSON. */
  readonly message: JsonObject | object;
  readonly headers?: Readonly<Record<string, unknown>>;
}

type CodeName = Uppercase<
  "invalid_argument" | "not_found" | "failed_precondition" | "aborted" | "resource_exhausted" | "permission_denied"
>;

/** The error at each endpoint when the call is refused. */
export interface Failure {
  readonly http?: `${number} ${Reason}`;
  readonly rpc?: `${CodeName} ${Reason}`;
  /** The message contains this at both endpoints. */
  readonly says?: string;
  /** Headers of the HTTP answer. */
  readonly headers?: Readonly<Record<string, unknown>>;
}

export interface Case<F = unknown> {
  /** The rule that the case shows. */
  readonly rule: string;
  /** Creates what the call needs, separately for each endpoint. */
  readonly given?: (shop: Shop) => Promise<F>;
  readonly http?: HttpCall | ((given: F) => HttpCall);
  readonly rpc?: RpcCall | ((given: F) => RpcCall);
  /** Why the other endpoint has no equivalent call. */
  readonly oneEndpoint?: string;
  readonly fails?: Failure;
  readonly answers?: (given: F) => { readonly http?: HttpAnswer; readonly rpc?: RpcAnswer };
  /** Further checks after the call. */
  readonly afterwards?: (shop: Shop, given: F) => Promise<void>;
}

/** Makes a case. TypeScript infers the type of what `given` returns. */
export const rule = <F>(name: string, body: Omit<Case<F>, "rule">): Case => ({ rule: name, ...body }) as Case;

/** An RPC, with its request checked against the contract. */
export const call = <M extends DescMethodUnary>(method: M, request: MessageInitShape<M["input"]>): RpcCall => ({
  method,
  request,
});

export const codeName = (code: Code, names: Readonly<Record<number, string>>): string =>
  (names[code] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();

/** Why a case has no RPC. */
export const ONLY_HTTP = {
  headers: "RPCs carry this in the message, not in headers",
  path: "RPCs have no path parameters and no query",
  media: "the protocols of RPCs have content types of their own",
  json: "protobuf messages can't be malformed in this way",
  methods: "RPCs have no methods",
} as const;
