/** The compressions that callers may use. */
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { limitUnpacked } from "./message-limit.ts";

/** What comes out of them is limited. */
export const limitedCompressions = (errors: ErrorCatalogue): Compression[] =>
  [compressionGzip, compressionBrotli].map(limitUnpacked(errors));
