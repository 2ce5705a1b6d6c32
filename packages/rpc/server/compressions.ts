/** The compressions that callers may use, gzip and Brotli. */
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { limitUnpacked } from "./message-limit.ts";

/** Both limit the size of a decompressed message. */
export const limitedCompressions = (errors: ErrorCatalogue): Compression[] =>
  [compressionGzip, compressionBrotli].map(limitUnpacked(errors));
