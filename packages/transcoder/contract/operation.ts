/** An HTTP operation: one verb on one path, and how a request and its answer are told by the messages of an RPC. */
import type { DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import type { FieldPath } from "./field-path.ts";
import type { Stream } from "./stream.ts";
import type { Template } from "./template.ts";

export interface HeaderField {
  /** As annotated, but for those that mean something here: "if-match" is "If-Match". */
  readonly name: string;
  readonly field: DescField;
}

/** Where the request's body goes: to one field, or to all fields that nothing else fills. */
export type Body =
  | { readonly kind: "field"; readonly field: DescField }
  | { readonly kind: "all"; readonly fields: readonly DescField[] };

/** When an operation ends, and what to call instead. */
export interface Deprecation {
  readonly deprecatedAt: Date;
  readonly sunsetAt: Date;
  /** Fills the path parameters of a request into the link to the successor. */
  readonly successor: ((request: object) => string) | undefined;
  /** The link as annotated, such as "/books?isbn={isbn}". Empty when there is none. */
  readonly successorTemplate: string;
}

/** One verb on one path, and the RPC behind it. */
export interface Operation {
  /**
   * Unique within the service, and in a document made so: the RPC's name, with another verb than the first binding's behind it,
   * and a number where several are alike. Where an Update has a mask, its PUT replaces and its PATCH updates.
   */
  readonly id: string;
  readonly service: DescService;
  readonly method: DescMethod;
  readonly tag: string;
  /** A method of HTTP in capital letters, or "*" for every one that no other operation on the path has. */
  readonly verb: string;
  /** The path as the contract writes it, such as "/v1/{name=shelves/*}:move". */
  readonly route: string;
  /**
   * The path as the document writes it: with JSON names, and a variable of several segments with a name for each of its
   * wildcards, such as "/v1/shelves/{shelf}:move".
   */
  readonly path: string;
  readonly template: Template;
  /** The fields that the path fills, in its order. */
  readonly params: readonly FieldPath[];
  /** The fields of the request that the query may fill, or the messages in which it may: see `parameterFinder`. */
  readonly query: readonly DescField[];
  /** Fields of the request that come as headers, such as Idempotency-Key and If-Match. */
  readonly requestHeaders: readonly HeaderField[];
  readonly body: Body | undefined;
  /** Present on a PATCH: the field that is told which members the merge patch names. */
  readonly updateMask: DescField | undefined;
  /** The update mask of a PUT or PATCH, which by default may also be given in the query, and then counts. */
  readonly maskParameter: DescField | undefined;
  readonly acceptsEmptyMask: boolean;
  /** Present where the option of that name makes events of the RPC's responses. Else a stream is of the responses as they are. */
  readonly stream: Stream | undefined;
  /** The field of the answer that is the body; undefined when all of the answer is. */
  readonly response: DescField | undefined;
  /** What the answer shows: the message of that field, or the whole answer; undefined on lists, and where the answer streams or is bytes. */
  readonly record: DescMessage | undefined;
  /** Present on a list that answers for one record where it is asked for by one value of this parameter. */
  readonly idFilter: DescField | undefined;
  /** Fields of the answer's record that are sent as headers, such as ETag. Empty without a record, be it the only one listed. */
  readonly responseHeaders: readonly HeaderField[];
  /** Present on a list with pages: the parameter for the token, and the answer's field with the next one. */
  readonly paging: { readonly pageToken: DescField; readonly nextPageToken: DescField } | undefined;
  /** 200 unless annotated. With 204 the answer has no body. */
  readonly successStatus: number;
  /** Makes the path of a created record from the record. */
  readonly location: ((record: object) => string) | undefined;
  readonly deprecation: Deprecation | undefined;
  /** Reasons for failure that are particular to this operation. */
  readonly errors: readonly string[];
  /** What a caller must have been granted, such as "books:read"; empty when the contract does not say. */
  readonly scope: string;
  /** Present where the RPC has no HTTP rule, and is served by its name. */
  readonly unbound?: true;
}

export const streamsAnswers = ({ method: { methodKind } }: Pick<Operation, "method">): boolean =>
  methodKind === "server_streaming" || methodKind === "bidi_streaming";

/** Whether the request's body is a stream of messages. Without a body there is one, made of path and query. */
export const streamsRequests = ({ method: { methodKind }, body }: Pick<Operation, "method" | "body">): boolean =>
  (methodKind === "client_streaming" || methodKind === "bidi_streaming") && body !== undefined;

/** Whether a message is one of bytes with their media type, which stand in a body as they are. */
const isHttpBody = (desc: DescMessage | undefined): boolean => desc?.typeName === "google.api.HttpBody";

const holdsHttpBody = (field: DescField): boolean => field.fieldKind === "message" && isHttpBody(field.message);

/** Whether the request's body is bytes of any type. */
export const takesBytes = ({ method, body }: Pick<Operation, "method" | "body">): boolean =>
  body?.kind === "field" ? holdsHttpBody(body.field) : body !== undefined && isHttpBody(method.input);

/** Whether the answer is bytes, of the type that the service names. */
export const answersBytes = ({ method, response }: Pick<Operation, "method" | "response">): boolean =>
  response ? holdsHttpBody(response) : isHttpBody(method.output);

/** A field that holds a message whose members a merge patch names one by one. */
type Merged = DescField & { readonly fieldKind: "message" };

/** Whether a merge patch merges within the field. Lists, maps and the well-known types are replaced as wholes. */
export const isMerged = (field: DescField): field is Merged =>
  field.fieldKind === "message" && !field.message.typeName.startsWith("google.protobuf.") && !isHttpBody(field.message);

/** The field with the resource: that of the body; where the body is the whole request, its only field that can be one. */
export function patchedField(body: Body | undefined): Merged | undefined {
  if (body?.kind === "field") return isMerged(body.field) ? body.field : undefined;
  const candidates = body?.fields.filter(isMerged) ?? [];
  return candidates.length === 1 ? candidates[0] : undefined;
}

/**
 * Whether an operation changes its body's resource, so that an update mask is about it and has a meaning of its own: a PUT without
 * one changes all of the resource, a PATCH what the merge patch names.
 */
export const isUpdate = (verb: string, body: Body | undefined): boolean =>
  (verb === "PATCH" && patchedField(body) !== undefined) ||
  (verb === "PUT" && body?.kind === "field" && isMerged(body.field));
