/** What an operation's responses are written as, chosen for each request. */
import type { Message } from "@bufbuild/protobuf";
import type { FastifyRequest } from "fastify";
import type { Codec } from "../contract/codec.ts";
import { answersBytes, type Operation } from "../contract/operation.ts";
import type { Stream } from "../contract/stream.ts";
import { HttpError } from "../errors/http-error.ts";
import { preferredType } from "../policy/media.ts";
import { ANY_BYTES, answeredBytes, type Bytes } from "../response/answer.ts";
import { bodyWriter, contentOf } from "../response/encode.ts";
import { eventFormats, eventReader, messageFormats, type StreamEvent, type StreamWriter } from "../response/events.ts";
import type { TellUnknown } from "../response/scalars.ts";

/** M is what a response is read to before it is written. */
export interface StreamForm<M> {
  /** What it throws is the service's fault. */
  readonly read: (response: Message) => M;
  /** An answer that fails in the midst is ended like one that is whole: readers of events know the error by its name. */
  readonly endsInOrder: boolean;
  /**
   * Chooses by the header Accept. What is returned begins the answer to the one message, if there is one, with its first part if it is known.
   *
   * @throws HttpError NOT_ACCEPTABLE
   */
  readonly choose: (
    request: FastifyRequest,
  ) => (
    asked: Message | undefined,
    first: IteratorResult<M> | undefined,
  ) => { readonly type: string; readonly writer: StreamWriter<M> };
}

export const streamFormOf = (operation: Operation, codec: Codec, tellUnknown?: TellUnknown): StreamForm<unknown> =>
  (operation.stream
    ? ofEvents(operation.stream, codec, tellUnknown)
    : answersBytes(operation)
      ? ofBytes(operation)
      : ofMessages(operation, codec, tellUnknown)) as never;

const ofEvents = (stream: Stream, codec: Codec, tellUnknown?: TellUnknown): StreamForm<StreamEvent> => ({
  read: eventReader(stream, codec, tellUnknown),
  endsInOrder: true,
  choose(request) {
    const format = chosen(request, eventFormats);
    return (asked) => {
      const lastId = asked && stream.id && stream.resume ? (contentOf(asked, stream.resume) as string) : "";
      return { type: `${format.type}; charset=utf-8`, writer: format.open(lastId) };
    };
  },
});

const ofMessages = (operation: Operation, codec: Codec, tellUnknown?: TellUnknown): StreamForm<string> => ({
  read: bodyWriter(operation, codec, tellUnknown),
  endsInOrder: false,
  choose(request) {
    const { type, open } = chosen(request, messageFormats);
    return () => ({ type: `${type}; charset=utf-8`, writer: open("") });
  },
});

/** One body, of the type that its first part names, with nothing between the parts. Until then there is nothing to begin with. */
const ofBytes = (operation: Operation): StreamForm<Bytes> => ({
  read: answeredBytes(operation),
  endsInOrder: false,
  choose: () => (_, first) => {
    if (!first) throw LATE;
    return { type: first.done ? ANY_BYTES : first.value.type, writer: BYTES };
  },
});

const LATE = new HttpError("DEADLINE_EXCEEDED", "The service did not begin its answer in time.");

const BYTES: StreamWriter<Bytes> = {
  head: "",
  message: ({ data }) => data,
  heartbeat: () => "",
  error: () => "",
  end: "",
};

function chosen<F extends { readonly type: string }>(request: FastifyRequest, forms: readonly F[]): F {
  const types = forms.map(({ type }) => type);
  return forms[types.indexOf(preferredType(request, types))] as F;
}
