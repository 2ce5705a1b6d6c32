/** HTTP/2 streams whose request goes on arriving while both sides are there, so that its time limit does not apply. */
import type { Http2Stream } from "node:http2";

const keptOpen = new WeakSet<Http2Stream>();

export const keepOpen = (stream: Http2Stream): void => void keptOpen.add(stream);

export const isKeptOpen = (stream: Http2Stream): boolean => keptOpen.has(stream);
