/** What every endpoint of Connect is told: which compressions callers may use, which fields, and what JSON is. */
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { ErrorCatalogue } from "../errors.ts";
import { limitUnpacked } from "./message-limit.ts";

/** gzip and Brotli. Both limit the size of a decompressed message. */
export const limitedCompressions = (errors: ErrorCatalogue): Compression[] =>
  [compressionGzip, compressionBrotli].map(limitUnpacked(errors));

/** What no contract knows is not kept: a call that waits would hold up to 1 MiB of it, a stream for as long as it lasts. */
export const knownFields = { readUnknownFields: false } as const;

/**
 * Options that make a Connect router refuse JSON that is not UTF-8 (RFC 8259 section 8.1). By default its decoder replaces
 * such bytes by U+FFFD, and a record that nobody sent would be stored. Connect's types don't declare this option.
 */
export const strictJson: object = { textDecoder: new TextDecoder("utf-8", { fatal: true }) };
