/** One call at the client's end of a link, from its start until it is settled. */
import { type DescMethodUnary, fromBinary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import type { Deadline } from "../call.ts";
import { markRunning } from "../client/failed-call.ts";
import type { Answer, Header } from "../gen/link/internal/v1/link_service_pb.ts";
import { type CallHeaders, toError, toHeaders } from "./frames.ts";

export interface NewCall {
  readonly method: DescMethodUnary;
  readonly input: Message;
  /** The input, encoded. */
  readonly bytes: Uint8Array;
  readonly headers: CallHeaders;
  readonly deadline: Deadline;
  readonly signal: AbortSignal | undefined;
}

/** A class, because there are thousands of calls, and closures would cost more than the call itself. */
export class ClientCall {
  readonly made: NewCall;
  /** Set once the call was sent. Called when its caller then gives it up. */
  onGiveUp: (() => void) | undefined;
  /** Called when a call that was given up is over at the service, with whether it was answered. */
  #over: ((isAnswered: boolean) => void) | undefined;
  #onSettled: (() => void) | undefined;
  readonly #answered = Promise.withResolvers<UnaryResponse>();

  constructor(made: NewCall, onSettled: () => void) {
    this.made = made;
    this.#onSettled = onSettled;
    made.signal?.addEventListener("abort", this);
  }

  get answered(): Promise<UnaryResponse> {
    return this.#answered.promise;
  }

  get isSettled(): boolean {
    return this.#onSettled === undefined;
  }

  /** Called when the signal aborts. */
  handleEvent(): void {
    this.giveUp(ConnectError.from(this.made.signal?.reason, Code.Canceled));
  }

  /** The caller stops waiting. If the call was sent, the service may go on with it. */
  giveUp(error: ConnectError): void {
    if (this.isSettled) return;
    if (this.onGiveUp) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      this.#over = resolve;
      markRunning(error, promise);
    }
    this.fail(error);
    this.onGiveUp?.();
  }

  /** The call will never be answered. */
  lose(error: ConnectError): void {
    this.#over?.(false);
    this.fail(error);
  }

  fail(error: unknown): void {
    if (this.#settle()) this.#answered.reject(error);
  }

  succeed(response: UnaryResponse): void {
    if (this.#settle()) this.#answered.resolve(response);
  }

  answer({ outcome, headers }: Answer): void {
    if (this.isSettled) {
      this.#over?.(true);
      return;
    }
    try {
      const { method } = this.made;
      if (outcome.case === "failure") throw toError(outcome.value, headers);
      if (outcome.case === undefined) throw new ConnectError("an answer without an outcome", Code.Internal);
      this.succeed(new LinkResponse(method, fromBinary(method.output, outcome.value), headers));
    } catch (error) {
      this.fail(ConnectError.from(error));
    }
  }

  #settle(): boolean {
    const onSettled = this.#onSettled;
    this.#onSettled = undefined;
    this.made.signal?.removeEventListener("abort", this);
    onSettled?.();
    return onSettled !== undefined;
  }
}

/** A response whose headers are created on demand, for hardly any caller reads them. */
class LinkResponse implements UnaryResponse {
  readonly stream = false;
  readonly service;
  readonly method: DescMethodUnary;
  readonly message: never;
  readonly #fields: readonly Header[];
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(method: DescMethodUnary, message: Message, fields: readonly Header[]) {
    this.service = method.parent;
    this.method = method;
    this.message = message as never;
    this.#fields = fields;
  }

  get header(): Headers {
    this.#header ??= toHeaders(this.#fields);
    return this.#header;
  }

  get trailer(): Headers {
    this.#trailer ??= new Headers();
    return this.#trailer;
  }
}
