/** Constants that both ends of a link share. */
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";

/** The version of the protocol on a link. */
export const LINK_VERSION = 1;

export const LINK_PATH = `/${LinkService.typeName}/${LinkService.method.link.name}`;
export const LINK_CONTENT_TYPE = "application/grpc+proto";

/**
 * Flow-control windows of a link and of its connection: bytes that may be sent before the other side has read any of them
 * (RFC 9113 section 5.2). With HTTP/2's default of 64 KiB a burst of calls would wait for a round trip.
 */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
export const CONNECTION_WINDOW_BYTES = 4 * STREAM_WINDOW_BYTES;
