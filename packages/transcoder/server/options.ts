/** The options, and their defaults. */
import type { DescFile, DescService, Registry } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type CodecName, createCodec } from "../contract/codec.ts";
import type { Operation } from "../contract/operation.ts";
import type { SurveyOptions } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { detailTypes, type Errors } from "../errors/forms.ts";
import type { About, Sources } from "../openapi/sources.ts";
import type { DeprecationPolicy } from "../policy/deprecation.ts";
import { type MetadataOptions, requestMetadata, responseMetadata } from "../policy/metadata.ts";
import type { SizeLimits } from "../request/http.ts";
import { TIMEOUT_HEADERS, type TimeoutHeader } from "../request/input.ts";
import { REQUEST_ID_HEADER } from "../request/request-id.ts";
import type { TellUnknown } from "../response/scalars.ts";
import type { InTime, ReadBody } from "./admission.ts";
import type { OpenStreams } from "./streams.ts";

/** How large a request may be and how long it may take. */
export interface Limits extends SizeLimits {
  /** Most bytes of a body; 4 MiB by default. The size of answers is limited by the transports, by their `readMaxBytes`. */
  readonly bodyBytes: number;
  /** Nesting of a JSON body; the outermost value counts as 1. 100 by default. */
  readonly jsonDepth: number;
  /** Longest time for a request, from its arrival, whatever its caller asks for; 30 s by default. */
  readonly requestMs: number;
}

/** Options that the server needs before the plugin is registered. */
export interface ServerOptions {
  /** Version of the HTTP interface, sent with every answer as `API-Version`; 1.0.0 by default. */
  readonly apiVersion?: string | undefined;
  readonly limits?: Partial<Limits> | undefined;
  /** How errors are answered; "status" by default: a google.rpc.Status with all details. */
  readonly errors?: Errors | undefined;
  /** Milliseconds since 1970. */
  readonly clock?: (() => number) | undefined;
  /** Uniform in [0, 1). */
  readonly random?: (() => number) | undefined;
}

export interface TranscoderOptions extends ServerOptions, MetadataOptions, SurveyOptions {
  /** What is served: services whose RPCs have a google.api.http rule, and the way to each. */
  readonly services: readonly { readonly desc: DescService; readonly transport: Transport }[];
  /** In front of every path, such as "/api"; empty, the default, for none. */
  readonly basePath?: string | undefined;
  /** Registering fails when anything can't be served. By default it is left out, and the log says why. */
  readonly strict?: boolean | undefined;
  /**
   * Takes a field of a request by its JSON name alone, as the document shows it. By default its name in the contract is taken
   * as well, as in proto3 JSON: `pageSize` and `page_size`.
   */
  readonly jsonNamesOnly?: boolean | undefined;
  /**
   * Ignores members and parameters that the operation does not know, unless the caller prefers `handling=strict` (RFC 7240). By
   * default they are errors.
   */
  readonly ignoreUnknown?: boolean | undefined;
  /**
   * Takes fields that the path fills for unknown in the query, and in a body that is the whole request. By default the query's
   * value is left aside, and the body's has to be the same.
   */
  readonly pathFieldsFromPathOnly?: boolean | undefined;
  /**
   * Takes `updateMask` in the query of a PUT or PATCH for unknown. By default it says what is changed, whatever the body names, and
   * the service judges it.
   */
  readonly maskFromBodyOnly?: boolean | undefined;
  /** The headers by which a caller can give a request less time; by default both. */
  readonly timeoutHeaders?: readonly TimeoutHeader[] | undefined;
  /** Refuses a body without a `Content-Type`. By default it is taken for JSON. */
  readonly requireContentType?: boolean | undefined;
  /**
   * How values are written as JSON: `proto3` is proto3 JSON; `exact` writes integers of 64 bits as numbers and enums by short
   * names. `proto3` by default.
   */
  readonly codec?: CodecName | undefined;
  /** Answers leave out zeros of fields without presence, empty lists and maps, and null for messages that are unset. */
  readonly omitUnpopulated?: boolean | undefined;
  /** Answers name fields as the contract does: `page_size`. */
  readonly originalNames?: boolean | undefined;
  /** Answers write enums as numbers. */
  readonly enumNumbers?: boolean | undefined;
  /** When deprecated operations end, where that differs from the contract. */
  readonly deprecation?: DeprecationPolicy | undefined;
  /**
   * Lets a request through or throws an HttpError, before anything but its route and its size is judged. By default
   * everybody may do everything.
   */
  readonly authorize?: ((request: FastifyRequest, operation: Operation) => Promise<void> | void) | undefined;
  /**
   * Aborts when the stream that answers a request has to end, because its caller may not have it any more: with the HttpError
   * for the caller as the reason. By default none has to.
   */
  readonly endOf?: ((request: FastifyRequest) => AbortSignal | undefined) | undefined;
  /**
   * The headers of the call that is made for a request. By default its `X-Request-Id`, its `Authorization`, and what
   * `allowHeaders` and `grpcMetadata` say.
   */
  readonly callHeaders?: ((request: FastifyRequest) => Record<string, string>) | undefined;
  /**
   * What the answer to a read depends on besides its address and the headers that the RPC's request takes, such as the
   * caller: equal GETs for which it returns the same text may be answered by one call, made as the first of them. Where it
   * returns undefined a request has a call of its own. By default every request has.
   */
  readonly answerDependsOn?: ((request: FastifyRequest) => string | undefined) | undefined;
  /** Aborts when streams have to end, where that is before the server is closed; then they end in any case. */
  readonly draining?: AbortSignal | undefined;
  /** Serves the OpenAPI document. By default there is none. */
  readonly openApi?: OpenApiOptions | undefined;
}

export interface OpenApiOptions
  extends Pick<About, "title" | "description" | "license" | "contact" | "url">,
    Partial<Pick<Sources, "docs" | "examples" | "patchExamples" | "security">> {
  /** Behind `basePath`; "/openapi.json" by default. */
  readonly path?: string | undefined;
}

const LIMITS: Limits = {
  urlBytes: 8 * 1024,
  headerBytes: 16 * 1024,
  bodyBytes: 4 * 1024 * 1024,
  jsonDepth: 100,
  requestMs: 30_000,
};

export const serverDefaults = ({ apiVersion, limits, errors, clock, random }: ServerOptions) => ({
  apiVersion: apiVersion ?? "1.0.0",
  limits: { ...LIMITS, ...limits },
  errors: errors ?? ("status" as const),
  clock: clock ?? Date.now,
  random: random ?? Math.random,
});

/** The files of the contract: what is served, and what it is built on. */
export const filesOf = ({ services = [] }: Partial<TranscoderOptions>): DescFile[] =>
  filesBelow(services.map(({ desc }) => desc.file));

/** @throws Error when a list of headers has a name that can't be passed on */
export const transcoderDefaults = (given: TranscoderOptions) => ({
  basePath: given.basePath ?? "",
  jsonNamesOnly: given.jsonNamesOnly ?? false,
  ignoreUnknown: given.ignoreUnknown ?? false,
  pathFieldsFromPathOnly: given.pathFieldsFromPathOnly ?? false,
  maskFromBodyOnly: given.maskFromBodyOnly ?? false,
  requireContentType: given.requireContentType ?? false,
  timeoutHeaders: given.timeoutHeaders ?? TIMEOUT_HEADERS,
  codec: createCodec({ ...given, registry: typesOf(given) }),
  deprecation: given.deprecation ?? {},
  authorize: given.authorize ?? (() => {}),
  endOf: given.endOf ?? (() => undefined),
  ...callHeadersOf(given),
  metadataFor: responseMetadata(given),
  answerDependsOn: given.answerDependsOn ?? (() => undefined),
});

/** What is compiled into the handler of an operation. */
export interface HandlerOptions extends ReturnType<typeof transcoderDefaults> {
  /** The way to the operation's service. */
  readonly transport: Transport;
  readonly limits: Limits;
  readonly clock: () => number;
  readonly tellUnknown: TellUnknown;
  readonly streams: OpenStreams;
  /** What an answer that has begun is told of a failure, as JSON text. */
  readonly last: (error: unknown, request: FastifyRequest, reply: FastifyReply) => string;
  /** Where the record at a path is found. */
  readonly addressOf: (path: string) => string;
  /** Reads a body that is one message. */
  readonly read: ReadBody;
  readonly inTime: InTime;
}

/** What an Any may hold: the types of the files that the services are built on. Found out when it is asked for. */
function typesOf(given: TranscoderOptions): () => Registry {
  let found: Registry | undefined;
  return () => {
    found ??= detailTypes(filesOf(given));
    return found;
  };
}

/** The headers of calls. `passedOn` are those that the caller sent: answers are shared only among callers that sent the same. */
function callHeadersOf(given: TranscoderOptions) {
  const own = given.callHeaders;
  if (own) return { callHeaders: own, passedOn: () => NOTHING };
  const passedOn = requestMetadata(given);
  return {
    passedOn: ({ headers }: FastifyRequest) => passedOn(headers),
    callHeaders: ({ id, headers }: FastifyRequest): Record<string, string> => ({
      [REQUEST_ID_HEADER]: id,
      ...passedOn(headers),
    }),
  };
}

const NOTHING: Readonly<Record<string, string>> = {};
