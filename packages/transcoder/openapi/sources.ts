import type { DescEnum, DescFile } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operation.ts";
import type { DeprecationPolicy } from "../policy/deprecation.ts";
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
