/** Streams of HTTP/2 whose request arrives as long as both sides are there: no limit of time counts for them. */
import type { Http2Stream } from "node:http2";

const keptOpen = new WeakSet<Http2Stream>();

export const keepOpen = (stream: Http2Stream): void => void keptOpen.add(stream);

export const isKeptOpen = (stream: Http2Stream): boolean => keptOpen.has(stream);
