import fc from "fast-check";
import { expect, test } from "vitest";
import type { Operation } from "../contract/operation.ts";
import type { Segment } from "../contract/template.ts";
import { createRouter } from "./router.ts";

/** Of "GET /a/{x}/*:verb": variables without a template of their own. */
function operation(text: string): Operation {
  const [, verb = "", path = "", customVerb = ""] = /^(\S+) \/([^:]*):?(.*)$/.exec(text) ?? [];
  const segments = path
    .split("/")
    .map((part): Segment => (part.includes("*") ? { wildcard: part as "*" } : { literal: part }));
  return { verb, route: text, template: { segments, customVerb, variables: [] } } as unknown as Operation;
}
const routerOf = (texts: readonly string[], basePath = "") => {
  const { find, ...others } = createRouter(texts.map(operation), basePath);
  return { ...others, find: (verb: string, target: string) => find(verb, target)?.route };
};

test("fixed text goes before one segment, and that before any number of them, from the left", () => {
  const all = ["GET /*/b/c", "GET /a/*/*", "GET /a/b/d", "GET /a/**", "GET /**", "GET /a/*"];
  for (const texts of [all, all.toReversed()]) {
    const { find } = routerOf(texts);
    expect(find("GET", "/a/b/c?q=1")).toBe("GET /a/*/*");
    expect(find("GET", "/a/b/d#x")).toBe("GET /a/b/d");
    expect(find("GET", "/z/b/c")).toBe("GET /*/b/c");
    expect(find("GET", "/z/z/c")).toBe("GET /**");
    expect(find("GET", "/a/b")).toBe("GET /a/*");
    expect(find("GET", "/a/b/c/d")).toBe("GET /a/**");
    expect(find("GET", "/a")).toBe("GET /a/**");
    expect(find("GET", "/")).toBe("GET /**");
  }
});

test("what follows ** is at the end of the path", () => {
  const { find } = routerOf(["GET /a/**/b/*", "GET /a/**/b", "GET /a/**"]);
  expect(find("GET", "/a/b")).toBe("GET /a/**/b");
  expect(find("GET", "/a/b/c")).toBe("GET /a/**/b/*");
  expect(find("GET", "/a/x/y/b/c")).toBe("GET /a/**/b/*");
  expect(find("GET", "/a/x/y/%62")).toBe("GET /a/**/b");
  expect(find("GET", "/a/x/b/")).toBe("GET /a/**");
  expect(find("GET", "/a")).toBe("GET /a/**");
  expect(routerOf(["GET /**/a/a"]).find("GET", "/a")).toBeUndefined();
});

test("one segment has some text, and a slash at the end makes another path", () => {
  const { find } = routerOf(["GET /a/*", "GET /a"]);
  expect(find("GET", "/a")).toBe("GET /a");
  for (const path of ["/a/", "//", "/a//", "/a/b/", "", "*", "a/b", "http://a/a"])
    expect(find("GET", path)).toBeUndefined();
  expect(routerOf(["GET /a/**"]).find("GET", "/a/")).toBe("GET /a/**");
  expect(routerOf(["GET /"]).find("GET", "/")).toBe("GET /");
});

test("fixed text may come percent-encoded, and an encoded slash is none", () => {
  const { find } = routerOf(["GET /pets/*", "GET /a b"]);
  expect(find("GET", "/p%65ts/1")).toBe("GET /pets/*");
  expect(find("GET", "/a%20b")).toBe("GET /a b");
  expect(find("GET", "/pets/1%2F2")).toBe("GET /pets/*");
  expect(find("GET", "/pets%2F1")).toBeUndefined();
  expect(find("GET", "/%zz/1")).toBeUndefined();
});

test("a custom verb is one where an operation has it, else text; %3A is text", () => {
  const { find, verbsAt } = routerOf([
    "POST /a/*:close",
    "POST /a/*",
    "GET /a/*",
    "GET /b",
    "GET /**:close",
    "PUT /a/x:close",
  ]);
  expect(find("POST", "/a/x:close")).toBe("POST /a/*:close");
  expect(find("POST", "/a/x:clos%65")).toBe("POST /a/*:close");
  expect(find("POST", "/a/x:open")).toBe("POST /a/*");
  expect(find("POST", "/a/x%3Aclose")).toBe("POST /a/*");
  expect(find("POST", "/a/x:close:close")).toBe("POST /a/*:close");
  expect(find("POST", "/a/:close")).toBe("POST /a/*");
  expect(find("GET", "/a/x:close")).toBe("GET /**:close");
  expect(find("GET", "/a:close/b")).toBeUndefined();
  expect(find("GET", "/b:")).toBeUndefined();
  expect(find("PUT", "/a/x")).toBeUndefined();
  expect(verbsAt("/a/x:close")).toEqual(["POST", "GET", "PUT", "HEAD"]);
  expect(verbsAt("/c")).toEqual([]);
});

test("HEAD is GET's, and * takes the verbs that no other operation has on the path", () => {
  const { find, verbs } = routerOf(["* /a/b", "GET /a/*", "POST /a/b", "GET /c", "HEAD /c", "* /**"]);
  expect(find("HEAD", "/a/x")).toBe("GET /a/*");
  expect(find("HEAD", "/c")).toBe("HEAD /c");
  expect(find("GET", "/a/b")).toBe("* /a/b");
  expect(find("POST", "/a/b")).toBe("POST /a/b");
  expect(find("LINK", "/a/b")).toBe("* /a/b");
  expect(find("LINK", "/a/x")).toBe("* /**");
  expect(find("OPTIONS", "/a/b")).toBeUndefined();
  expect(find("NONSENSE", "/a/b")).toBeUndefined();
  expect(verbs).toContain("M-SEARCH");
  expect(verbs).not.toContain("CONNECT");
});

test("the base path comes first, decoded like any fixed text", () => {
  const { find } = routerOf(["GET /a/*", "GET /"], "/api/v2");
  expect(find("GET", "/api/v2/a/1")).toBe("GET /a/*");
  expect(find("GET", "/%61pi/v2/a/1")).toBe("GET /a/*");
  expect(find("GET", "/api/v2/")).toBe("GET /");
  expect(find("GET", "/a/1")).toBeUndefined();
});

test("of the operations that fit, none is more specific than the one that is found", () => {
  const segment = fc.constantFrom("a", "b", "*");
  const segments = fc.array(segment, { maxLength: 3 });
  const template = fc
    .tuple(segments, fc.option(segments))
    .map(
      ([parts, tail]) => `GET /${[...(parts.length > 0 ? parts : ["a"]), ...(tail ? ["**", ...tail] : [])].join("/")}`,
    );
  const path = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 5 });
  const ranks: Record<string, string> = { "**": "2", "*": "1" };
  const rank = (parts: string[]) =>
    parts.map((part) => ranks[part] ?? "0").join("") + (parts.includes("**") ? "3" : "");
  const fit = (parts: string[], path: string[]) =>
    parts.length === path.length && parts.every((part, i) => part === "*" || part === path[i]);
  const fits = (parts: string[], path: string[]) => {
    const at = parts.indexOf("**");
    if (at < 0) return fit(parts, path);
    const tail = parts.slice(at + 1);
    return (
      path.length >= parts.length - 1 &&
      fit(parts.slice(0, at), path.slice(0, at)) &&
      fit(tail, path.slice(path.length - tail.length))
    );
  };
  fc.assert(
    fc.property(fc.array(template, { minLength: 1, maxLength: 12 }), path, (templates, path) => {
      const best = templates
        .filter((one) => fits(one.slice(5).split("/"), path))
        .toSorted((a, b) => {
          const [x, y] = [a, b].map((one) => rank(one.slice(5).split("/"))) as [string, string];
          return x < y ? -1 : x > y ? 1 : 0;
        })[0];
      expect(routerOf(templates).find("GET", `/${path.join("/")}`)).toBe(best);
    }),
  );
});

test("no node is visited twice: backtracking costs at most what the contract has of nodes", () => {
  // Every way of a and * in 10 segments, so that all of them fit the path but for its end.
  const DEPTH = 10;
  const ways = Array.from({ length: 2 ** DEPTH }, (_, i) =>
    Array.from({ length: DEPTH }, (_, at) => ((i >> at) & 1 ? "a" : "*")).join("/"),
  );
  const { find } = routerOf(ways.map((way) => `GET /${way}/end`));
  const slices = { count: 0 };
  const { slice } = String.prototype;
  const counted = (path: string) => {
    slices.count = 0;
    String.prototype.slice = function (...given) {
      slices.count++;
      return slice.apply(this, given);
    };
    try {
      expect(find("GET", path)).toBeUndefined();
    } finally {
      String.prototype.slice = slice;
    }
    return slices.count;
  };
  const NODES = 2 ** (DEPTH + 1);
  expect(counted(`/${"a/".repeat(DEPTH)}other`)).toBeLessThanOrEqual(NODES);
  // What follows is not looked at.
  expect(counted(`/${"a/".repeat(5000)}other`)).toBeLessThanOrEqual(NODES);
});
