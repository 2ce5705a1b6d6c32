/**
 * Most messages within one another, a request or an answer itself counted as the first: as many as readers of protobuf take.
 * Timestamps, wrappers and each google.protobuf.Any are messages too, and an array or an object of a google.protobuf.Value is
 * two.
 */
export const MOST_NESTED = 100;
