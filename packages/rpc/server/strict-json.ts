/**
 * Options by which a Connect router refuses JSON that is not UTF-8 (RFC 8259 section 8.1). By default its decoder makes
 * U+FFFD of such bytes, and a record would be stored that nobody sent. Connect's types don't speak of the decoder.
 */
export const strictJson: object = { textDecoder: new TextDecoder("utf-8", { fatal: true }) };
