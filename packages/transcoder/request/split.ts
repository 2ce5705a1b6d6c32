/** Cuts a body that is a stream of JSON messages into its messages, as its pieces come: lines, or the items of one array. */
import { HttpError } from "../errors/http-error.ts";
import { growing } from "./http.ts";

/** All that it throws are HttpErrors. */
export interface Splitter {
  /** The messages that end with this piece. */
  readonly push: (piece: Uint8Array) => Uint8Array[];
  /** The message that ends with the body, if there is one. */
  readonly end: () => Uint8Array[];
}

const LINE_FEED = 0x0a;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
const isBlank = (bytes: Uint8Array): boolean => bytes.every(isSpace);

const malformed = (message: string) => new HttpError("MALFORMED_JSON", message);

/** Puts one message together, of no more than so many bytes. */
function messageOf(maxBytes: number) {
  const bytes = growing();
  return {
    take: bytes.take,
    add(piece: Uint8Array): void {
      if (bytes.length() + piece.length > maxBytes)
        throw new HttpError("PAYLOAD_TOO_LARGE", `A message of the body is larger than ${maxBytes} bytes.`);
      bytes.add(piece);
    },
  };
}

/** Each line is a message. Blank ones say nothing, and the last one need not end. */
export function splitLines(maxBytes: number): Splitter {
  const line = messageOf(maxBytes);
  const taken = (): Uint8Array[] => {
    const bytes = line.take();
    return isBlank(bytes) ? [] : [bytes];
  };
  return {
    push(piece) {
      const found: Uint8Array[] = [];
      let start = 0;
      for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, start)) {
        line.add(piece.subarray(start, end));
        start = end + 1;
        found.push(...taken());
      }
      line.add(piece.subarray(start));
      return found;
    },
    end: taken,
  };
}

/**
 * Each item of an array is a message. Only brackets and quotes are looked at: whether an item is JSON is judged by who reads it.
 */
function splitArray(maxBytes: number): Splitter {
  const item = messageOf(maxBytes);
  let count = 0;
  /** Of the brackets that are open; 0 before the array and behind it. */
  let depth = 0;
  let isOver = false;
  let isInText = false;
  let isEscaped = false;

  /** Whether a byte within the array belongs to an item, and does not end it. */
  function isOfItem(byte: number): boolean {
    if (isInText) {
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) isInText = false;
      return true;
    }
    if (byte === QUOTE) isInText = true;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth++;
    else if (depth === 1) return byte !== COMMA && byte !== CLOSE_ARRAY;
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--;
    return true;
  }

  function taken(isLast: boolean): Uint8Array[] {
    const bytes = item.take();
    if (isBlank(bytes) && isLast && count === 0) return [];
    if (isBlank(bytes)) throw malformed("The array has a comma beside which a message is missing.");
    count++;
    return [bytes];
  }

  return {
    push(piece) {
      const found: Uint8Array[] = [];
      let start = 0;
      for (let i = 0; i < piece.length; i++) {
        const byte = piece[i] as number;
        if (depth === 0) {
          if (isSpace(byte)) continue;
          if (isOver || byte !== OPEN_ARRAY) throw malformed("There is something behind the array.");
          depth = 1;
          start = i + 1;
        } else if (!isOfItem(byte)) {
          item.add(piece.subarray(start, i));
          start = i + 1;
          isOver = byte === CLOSE_ARRAY;
          found.push(...taken(isOver));
          if (isOver) depth = 0;
        }
      }
      if (depth > 0) item.add(piece.subarray(start));
      return found;
    },
    end() {
      if (!isOver) throw malformed("The array does not end.");
      return [];
    },
  };
}

/** An array, if the body begins with a bracket, else lines. */
export function splitJson(maxBytes: number): Splitter {
  let chosen: Splitter | undefined;
  return {
    push(piece) {
      if (chosen) return chosen.push(piece);
      const first = piece.findIndex((byte) => !isSpace(byte));
      if (first < 0) return [];
      chosen = piece[first] === OPEN_ARRAY ? splitArray(maxBytes) : splitLines(maxBytes);
      return chosen.push(piece.subarray(first));
    },
    end: () => chosen?.end() ?? [],
  };
}
