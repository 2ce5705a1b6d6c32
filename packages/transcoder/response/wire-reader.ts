/** Reads what there is in most encoded messages (https://protobuf.dev/programming-guides/encoding/). Throws at the rest. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const slices = Buffer.prototype as unknown as Record<
  "latin1Slice" | "utf8Slice",
  (this: Uint8Array, from: number, to: number) => string
>;

export class WireReader {
  protected readonly bytes: Uint8Array;
  protected at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** A number of 49 bits at most. */
  varint(end: number): number {
    const { bytes } = this;
    const first = bytes[this.at] as number;
    if (first < 128 && this.at < end) {
      this.at++;
      return first;
    }
    let value = 0;
    for (let scale = 1; scale < 2 ** 49 && this.at < end; scale *= 128) {
      const byte = bytes[this.at++] as number;
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
    }
    throw new Error("a number without its end, or very large");
  }

  /** Where what begins here ends, after its length. */
  lengthDelimited(end: number): number {
    const length = this.varint(end);
    if (length > end - this.at) throw new Error("beyond the end");
    return this.at + length;
  }

  /** A string that nobody needs. */
  skipString(end: number): void {
    const { bytes } = this;
    const before = this.at;
    const to = this.lengthDelimited(end);
    for (let i = this.at; i < to; i++) {
      if ((bytes[i] as number) > 127) {
        this.at = before;
        this.string(end);
        break;
      }
    }
    this.at = to;
  }

  slice(end: number): Uint8Array {
    const to = this.lengthDelimited(end);
    const from = this.at;
    this.at = to;
    return this.bytes.subarray(from, to);
  }

  string(end: number): string {
    const to = this.lengthDelimited(end);
    const from = this.at;
    this.at = to;
    const text = slices.utf8Slice.call(this.bytes, from, to);
    // It stands for what is no UTF-8.
    if (text.includes("\ufffd")) throw new Error("perhaps no UTF-8");
    return text;
  }

  /** A string as it stands in JSON. */
  jsonString(end: number): string {
    const { bytes } = this;
    const before = this.at;
    const to = this.lengthDelimited(end);
    for (let i = this.at; i < to; i++) {
      const byte = bytes[i] as number;
      if (byte < 32 || byte > 126 || byte === QUOTE || byte === BACKSLASH) {
        this.at = before;
        return JSON.stringify(this.string(end));
      }
    }
    const text = `"${slices.latin1Slice.call(bytes, this.at, to)}"`;
    this.at = to;
    return text;
  }
}
