/** Refusals of a service: errors that are meant for the caller, and the conditions of a write. */
import * as rpc from "@petstore/rpc/domain-error";
import { weakTagAdvice } from "connect-transcoder/http";
import type { Reason } from "#errors";
import { toEtag } from "./record.ts";

export type { Reason } from "#errors";

/**
 * An error that is meant for the caller, thrown by a rule or a handler. It is independent of the transport: the
 * dispatcher turns it into an RPC error, the gateway into an HTTP error.
 */
export class DomainError extends rpc.DomainError<Reason> {}

/** What a write requires of the record's present version (RFC 9110, 13), in the request fields that HTTP sends as headers. */
export interface Preconditions {
  /** What If-Match takes: the record's tag must be among these. */
  readonly etag?: string | undefined;
  /** What If-None-Match takes: the record's tag must not be among these. */
  readonly ifNoneMatch?: string | undefined;
}

/**
 * Judges the preconditions of a write on a record that exists, at this version, in the order of RFC 9110, 13.2.2. If-Match
 * compares strongly (13.1.1), so weak tags never match; If-None-Match compares weakly (13.1.2).
 *
 * @throws DomainError ETAG_MISMATCH
 */
export function checkPreconditions({ etag, ifNoneMatch }: Preconditions, version: number): void {
  const current = toEtag(version);
  if (etag !== undefined && !isAnything(etag) && !tagsIn(etag).includes(current)) {
    const advice = weakTagAdvice(tagsIn(etag)) ?? "Read it and try again.";
    throw new DomainError("ETAG_MISMATCH", `The record is at revision ${current} now. ${advice}`);
  }
  if (ifNoneMatch === undefined) return;
  if (isAnything(ifNoneMatch) || tagsIn(ifNoneMatch).some((tag) => tag.replace(/^W\//, "") === current))
    throw new DomainError("ETAG_MISMATCH", `The record exists at revision ${current}, which the condition rules out.`);
}

const isAnything = (condition: string): boolean => condition.trim() === "*";

const tagsIn = (condition: string): readonly string[] => condition.match(/(W\/)?"[^"]*"/g) ?? [];
