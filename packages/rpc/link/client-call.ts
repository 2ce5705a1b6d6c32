/** One call of a link's client, from the moment it is made until it is settled. */
import { type DescMethodUnary, fromBinary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import type { ReadAnswer } from "connect-transcoder/response/answer-reader";
import { markRunning } from "../client/still-running.ts";
import type { Deadline } from "../deadline.ts";
import type { Answer, Header } from "../gen/link/internal/v1/link_service_pb.ts";
import { toError } from "./failure.ts";
import { type CallHeaders, toHeaders } from "./headers.ts";

export interface NewCall {
  readonly method: DescMethodUnary;
  readonly input: Message;
  /** The input, encoded. */
  readonly bytes: Uint8Array;
  readonly headers: CallHeaders;
  readonly deadline: Deadline;
  readonly signal: AbortSignal | undefined;
  /** What the caller takes in place of the answer's message, if it can be made. */
  readonly read: ReadAnswer | undefined;
}

/** A class, unlike most of what is here: there are thousands, and closures would cost more than the call. */
export class ClientCall {
  readonly made: NewCall;
  readonly answered: Promise<UnaryResponse>;
  /** Called when it is given up after it was sent. */
  onGiveUp: (() => void) | undefined;
  /** Called when it is over at the service, after it was given up: whether it was answered. */
  #over: ((isAnswered: boolean) => void) | undefined;
  #onSettled: (() => void) | undefined;
  #resolve!: (response: UnaryResponse) => void;
  #reject!: (error: unknown) => void;

  constructor(made: NewCall, onSettled: () => void) {
    this.made = made;
    this.#onSettled = onSettled;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    made.signal?.addEventListener("abort", this);
  }

  get isSettled(): boolean {
    return this.#onSettled === undefined;
  }

  /** Of its signal. */
  handleEvent(): void {
    this.giveUp(ConnectError.from(this.made.signal?.reason, Code.Canceled));
  }

  /** Nobody waits for it any more. Once it was sent, the service may go on with it. */
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

  /** It will never be answered. */
  lose(error: ConnectError): void {
    this.#over?.(false);
    this.fail(error);
  }

  fail(error: unknown): void {
    if (this.#settle()) this.#reject(error);
  }

  succeed(response: UnaryResponse): void {
    if (this.#settle()) this.#resolve(response);
  }

  answer({ outcome, headers }: Answer): void {
    if (this.isSettled) {
      this.#over?.(true);
      return;
    }
    try {
      const { method, read } = this.made;
      if (outcome.case === "failure") throw toError(outcome.value, headers);
      if (outcome.case === undefined) throw new ConnectError("an answer without an outcome", Code.Internal);
      const { value } = outcome;
      this.succeed(new LinkResponse(method, read?.(value) ?? fromBinary(method.output, value), headers));
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

/** Its headers are made when they are asked for, which hardly anybody does. */
class LinkResponse implements UnaryResponse {
  readonly stream = false;
  readonly service;
  readonly method: DescMethodUnary;
  readonly message: never;
  readonly #fields: readonly Header[];
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  constructor(method: DescMethodUnary, message: object, fields: readonly Header[]) {
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
