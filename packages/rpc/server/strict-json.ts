/**
 * Options that make a Connect router refuse JSON that is not UTF-8 (RFC 8259 section 8.1). By default its decoder replaces
 * such bytes by U+FFFD, and a record that nobody sent would be stored. Connect's types don't declare this option.
 */
export const strictJson: object = { textDecoder: new TextDecoder("utf-8", { fatal: true }) };
