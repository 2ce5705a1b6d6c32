import { once } from "node:events";
import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { hostProblem, isHost, readBody, withBrackets } from "./http.ts";

test.each(["a", "a.example", "a.example:80", "a:", "127.0.0.1:8080", "[::1]:8080", "a_b", "a-b"])(
  "%s is a host",
  (text) => {
    expect(isHost(text)).toBe(true);
  },
);

test.each(["", " ", "a b", "a/b", "/", "a?b", "a#b", "a@b", "a\\b", "a:b", "a:65536", ":80", "[::1", "a:b:c", "%zz"])(
  "%j is none",
  (text) => {
    expect(isHost(text)).toBe(false);
  },
);

test("what is a host makes a URL of this host", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), (text) => {
      if (!isHost(text)) return;
      const { username, pathname, search, hash } = new URL(`http://${text}`);
      expect({ username, pathname, search, hash }).toEqual({ username: "", pathname: "/", search: "", hash: "" });
    }),
  );
});

const problem = (httpVersion: string, ...rawHeaders: string[]) => hostProblem({ httpVersion, rawHeaders });

test("HTTP/1.1 names its host once, HTTP/1.0 may leave it out", () => {
  expect(problem("1.1", "Host", "a")).toBeUndefined();
  expect(problem("1.1", "x", "host")).toBe("must be given once");
  expect(problem("1.1", "Host", "a", "host", "a")).toBe("must be given once");
  expect(problem("1.1", "Host", "a/b")).toMatch(/must be a host name/);
  expect(problem("1.0")).toBeUndefined();
  expect(problem("1.0", "Host", "")).toMatch(/must be a host name/);
});

test("HTTP/2 names it in :authority or Host, or the same in both", () => {
  expect(problem("2.0", ":authority", "a")).toBeUndefined();
  expect(problem("2.0", "host", "a")).toBeUndefined();
  expect(problem("2.0", ":authority", "a", "host", "a")).toBeUndefined();
  expect(problem("2.0", ":authority", "a", "host", "b")).toBe("must not differ from :authority");
  expect(problem("2.0", ":authority", "a", "host", "a", "host", "a")).toBe("must be given once");
  expect(problem("2.0", ":authority", "u@a")).toMatch(/must be a host name/);
  expect(problem("2.0")).toBe("must be given once");
});

test.each([
  ["http://a/pets", undefined],
  ["HTTPS://A.example:80?x", undefined],
  ["/http://u@a/", undefined],
  ["*", undefined],
  ["http://u@a/pets", /must be a host name/],
  ["http:///pets", /must be a host name/],
  ["http://[::1/pets", /must be a host name/],
])("a target that names a host itself: %s", (url, expected) => {
  const named = hostProblem({ httpVersion: "1.1", rawHeaders: ["Host", "b"], url });
  if (expected) expect(named).toMatch(expected);
  else expect(named).toBeUndefined();
  expect(hostProblem({ httpVersion: "1.1", rawHeaders: [], url })).toBe("must be given once");
  expect(hostProblem({ httpVersion: "1.1", rawHeaders: ["Host", "b/c"], url })).toMatch(/must be a host name/);
});

test("Node's HTTP/2 client leaves the brackets of an IPv6 address out", () => {
  for (const authority of ["::1:8080", "fd00::2:80", "::ffff:7f00:1:8080", "1:2:3:4:5:6:7:8:443"])
    expect([authority, problem("2.0", ":authority", authority)]).toEqual([authority, undefined]);
  expect(withBrackets("::1:8080")).toBe("[::1]:8080");
  expect(withBrackets("1:2:3:4:5:6:7:8:443")).toBe("[1:2:3:4:5:6:7:8]:443");
  for (const text of ["[::1]:8080", "127.0.0.1:80", "a.example:80", "a", "", "::", ":80", "a:b:c"])
    expect(withBrackets(text)).toBe(text);
  expect(problem("2.0", ":authority", "::1")).toMatch(/must be a host name/);
  expect(problem("1.1", "Host", "::1:8080")).toMatch(/must be a host name/);
});

const pieces = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from([i % 256]));
const body = (count: number) => Readable.from(pieces(count), { objectMode: false });

test.each([0, 1, 2, 3, 1000])("%i pieces are one body", async (count) => {
  const lengths: number[] = [];
  const read = await readBody(body(count), (piece, length) => void lengths.push(length - piece.length));
  expect(read).toEqual(Buffer.concat(pieces(count)));
  expect(lengths).toEqual(Array.from({ length: count }, (_, i) => i));
});

test("what follows a refused piece is dropped", async () => {
  const source = body(1000);
  const ended = once(source, "end");
  const refused = readBody(source, (_piece, length) => {
    if (length > 10) throw new Error("too long");
  });
  await expect(refused).rejects.toThrow("too long");
  await ended;
});

test("a body that breaks off is none, whether it does so before or while it is read", async () => {
  const source = new Readable({ read() {} });
  source.push("begun");
  const read = readBody(source, () => source.destroy());
  await expect(read).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
  await expect(readBody(source, () => {})).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
});
