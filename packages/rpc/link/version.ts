/** What both ends of a link know of each other before they speak. */
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";

/** Of what is said on a link. */
export const LINK_VERSION = 1;

export const LINK_PATH = `/${LinkService.typeName}/${LinkService.method.link.name}`;
export const LINK_CONTENT_TYPE = "application/grpc+proto";

/**
 * Bytes that may be on their way on a link, and on its connection, before the other side has read any of them (RFC 9113
 * section 5.2). With HTTP/2's 64 KiB a burst of calls waits for a round trip.
 */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
export const CONNECTION_WINDOW_BYTES = 4 * STREAM_WINDOW_BYTES;
