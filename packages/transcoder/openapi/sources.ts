/** What a document is made from, and what it is told besides. */
import type { DescEnum, DescFile } from "@bufbuild/protobuf";
import type { CodecOptions } from "../contract/codec.ts";
import type { Operation } from "../contract/operation.ts";
import type { DeprecationPolicy } from "../policy/deprecation.ts";
import type { TimeoutHeader } from "../request/input.ts";
import type { Json, JsonObject } from "./json.ts";

/** What a document is made from. */
export interface Sources {
  readonly operations: readonly Operation[];
  /** The catalogue of errors: an enum whose values carry the option `error`. */
  readonly reasons?: DescEnum | undefined;
  /** Without a catalogue: the form of errors. "status", a google.rpc.Status, by default; nothing is said of an unknown one. */
  readonly errors?: "status" | "problem" | "unknown" | undefined;
  /** The comments of the contract by full name; by default those that its files have, which generated code has not. */
  readonly docs?: Readonly<Record<string, string>> | undefined;
  /** The files of the contract and all below them, where predefined rules are found. */
  readonly files: readonly DescFile[];
  /** Examples by the full name of a message, as JSON on the wire; one of a request goes before that of its body's message. */
  readonly examples?: Readonly<Record<string, readonly Json[]>>;
  /** Examples of merge patches, likewise. */
  readonly patchExamples?: Readonly<Record<string, readonly Json[]>>;
  readonly deprecation: DeprecationPolicy;
  /** What callers can show, any of it, as the document's `securitySchemes`. By default nobody is asked. */
  readonly security?: Readonly<Record<string, JsonObject>> | undefined;
}

/** What the document says about the whole interface. Options of the transcoder have the same defaults here. */
export interface About extends Omit<CodecOptions, "registry"> {
  readonly title: string;
  readonly version: string;
  readonly description?: string | undefined;
  /** By its identifier at spdx.org/licenses. */
  readonly license?: string | undefined;
  /** Who answers for it. */
  readonly contact?: string | undefined;
  /** Where callers reach it, such as "https://api.example". By default where they read the document. */
  readonly url?: string | undefined;
  /** In front of every path; empty for none. */
  readonly basePath: string;
  /** Longest time for a request. */
  readonly requestMs: number;
  /** By which a caller can ask for less; by default all that there are. */
  readonly timeoutHeaders?: readonly TimeoutHeader[] | undefined;
  /** Whether `updateMask` in a query is unknown; by default it says what a PUT or PATCH changes. */
  readonly maskFromBodyOnly?: boolean | undefined;
  /** Whether members and parameters that an operation does not know are ignored; by default they are errors. */
  readonly ignoreUnknown?: boolean | undefined;
  /** What stands before the operations adds this to all answers, such as a limit of rates. */
  readonly everywhere?:
    | {
        /** Codes of the catalogue that any request may be refused with. */
        readonly errors: readonly string[];
        /** Header objects by name. */
        readonly headers: Readonly<Record<string, JsonObject>>;
      }
    | undefined;
}

/** Sources with all their texts: the comments of the contract by full name. */
export type Told = Sources & { readonly docs: NonNullable<Sources["docs"]> };
