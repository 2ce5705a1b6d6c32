/** What a case is: a request, the call that it becomes, what the service answers, and the response. README.md says the same. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import type { TranscoderOptions } from "../../index.ts";

export interface Case {
  readonly name: string;
  /** The test of another gateway that says the same, what that gateway answers if we answer otherwise, and why we do. */
  readonly from?: string;
  readonly theirs?: string;
  readonly because?: string;
  /** Options of the transcoder that JSON can say. */
  readonly options?: CaseOptions;
  readonly request: CaseRequest;
  /** The call. Without it the service must not be called. */
  readonly rpc?: {
    /** "package.Service/Method". */
    readonly method: string;
    /** In proto3 JSON. */
    readonly messages: readonly JsonValue[];
    /** Those that matter; null for one that must not come. */
    readonly headers?: Readonly<Record<string, string | null>>;
  };
  readonly answer?: Answer;
  readonly response: CaseResponse;
}

export type CaseOptions = Partial<Omit<TranscoderOptions, "services">>;

export interface CaseRequest {
  /** "GET" if it is not given. */
  readonly method?: string;
  /** As it goes into the request line. */
  readonly path: string;
  /** No `Content-Type` is added to them. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** A JSON value, a text, or bytes in base64. */
  readonly body?: JsonValue;
  readonly text?: string;
  readonly bytes?: string;
}

/** What the service says, once it has all of the request. By default one empty message, or none on a stream. */
export interface Answer {
  readonly messages?: readonly JsonValue[];
  /** Comes behind the messages. The code is a number of google.rpc.Code. */
  readonly error?: {
    readonly code: number;
    readonly message?: string;
    /** Each with its `@type`. */
    readonly details?: readonly JsonValue[];
  };
  readonly headers?: Readonly<Record<string, string>>;
  readonly trailers?: Readonly<Record<string, string>>;
  /** Says nothing more, until the call is cancelled. */
  readonly hangs?: boolean;
}

export interface CaseResponse {
  readonly status: number;
  /** Those that matter; null for one that must not come. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** At most one of these: a JSON value, a text, bytes in base64, JSON values of lines, or parts of a google.rpc.Status. */
  readonly body?: JsonValue;
  readonly text?: string;
  readonly bytes?: string;
  readonly lines?: readonly JsonValue[];
  readonly error?: {
    readonly code: number;
    readonly message?: string;
    /** Of its google.rpc.ErrorInfo. */
    readonly reason?: string;
    /** Named by its google.rpc.BadRequest. */
    readonly field?: string;
  };
  /** The response must not look whole. */
  readonly breaksOff?: boolean;
}

/** The cases of files below testdata. Each name stands once in a file. */
export function readCases(...names: readonly string[]): Case[] {
  return names.flatMap((name) => {
    const cases = JSON.parse(readFileSync(join(import.meta.dirname, "..", name), "utf8")) as Case[];
    const twice = cases.find((one, i) => cases.findIndex((other) => other.name === one.name) !== i);
    if (twice) throw new Error(`${name} has two cases "${twice.name}"`);
    return cases;
  });
}
