import { expect, test } from "vitest";
import { formatApiKey, hashOf, isApiKey, newApiKey, parseApiKey } from "./api-key.ts";

const key = newApiKey();
const text = formatApiKey(key);

test("a key is read back as it was made, with 256 bits of its own", () => {
  expect(text).toMatch(/^psk_[\da-f]{12}_[\da-f]{72}$/);
  expect(parseApiKey(text)).toEqual(key);
  expect(Buffer.from(key.secret, "hex")).toHaveLength(32);
  expect(new Set(Array.from({ length: 100 }, () => newApiKey().secret)).size).toBe(100);
  expect([isApiKey(text), isApiKey("eyJhbGciOiJub25lIn0.e30.")]).toEqual([true, false]);
});

test("one wrong digit, wherever it is, is told as a typo, and two that changed places too", () => {
  for (let i = "psk_".length; i < text.length; i++) {
    if (text[i] === "_") continue;
    const wrong = text.slice(0, i) + (text[i] === "0" ? "1" : "0") + text.slice(i + 1);
    expect(() => parseApiKey(wrong), wrong).toThrow("mistyped");
    const swapped = text.slice(0, i) + (text[i + 1] ?? "") + text[i] + text.slice(i + 2);
    if (swapped !== text && /^psk_\w{12}_\w{72}$/.test(swapped) && swapped[16] === "_")
      expect(() => parseApiKey(swapped), swapped).toThrow("mistyped");
  }
});

test.each(["", "psk_", text.slice(0, -1), `${text}0`, text.toUpperCase(), `${text}\n`, ` ${text}`])(
  "%j is no complete key",
  (wrong) => {
    expect(() => parseApiKey(wrong)).toThrow("not complete");
  },
);

test("what is stored of a secret is its SHA-256 and nothing of it", () => {
  // Of `printf abc | sha256sum`.
  expect(hashOf("abc").toString("hex")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
