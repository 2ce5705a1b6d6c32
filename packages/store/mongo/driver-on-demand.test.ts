import { createRequire } from "node:module";
import "./driver-on-demand.ts";
import fc from "fast-check";
import { MongoClient } from "mongodb";
import { expect, test } from "vitest";

const ofDriver = createRequire(createRequire(import.meta.url).resolve("mongodb"));
const isLoaded = (part: RegExp) => Object.keys(ofDriver.cache).some((file) => part.test(file));

test("a connection string is read without a copy of what Node has", () => {
  const { options } = new MongoClient(
    "mongodb://some%40body:p%C3%A4ss%2Fword@one.example:27018,[::1],two.example/pets?replicaSet=rs0&W=majority&tls=true&readPreferenceTags=dc:a,rack:1&readPreferenceTags=&readPreference=nearest",
  );
  expect(options.hosts.map(String)).toEqual(["one.example:27018", "[::1]:27017", "two.example:27017"]);
  expect(options.credentials).toMatchObject({ username: "some@body", password: "päss/word", source: "pets" });
  expect(options).toMatchObject({ dbName: "pets", replicaSet: "rs0", tls: true, writeConcern: { w: "majority" } });
  expect(options.readPreference.tags).toEqual([{ dc: "a", rack: "1" }, {}]);
  expect(isLoaded(/node_modules\/tr46\//)).toBe(false);
});

test("Node reads connection strings as that copy does", () => {
  const require = createRequire(ofDriver.resolve("mongodb-connection-string-url"));
  const file = require.resolve("whatwg-url");
  const ofNode = require.cache[file];
  delete require.cache[file];
  const copy = require("whatwg-url");
  require.cache[file] = ofNode;
  const read = (Url: typeof URL, uri: string) => {
    try {
      const { protocol, username, password, pathname, search, searchParams, href } = new Url(uri);
      return [protocol, username, password, pathname, search, [...searchParams], href];
    } catch {
      return "refused";
    }
  };
  // The copy misreads what stands behind a character of two units.
  const character = fc.integer({ min: 1, max: 0xd7ff }).map((unit) => String.fromCharCode(unit));
  const part = fc.string({ unit: fc.oneof(fc.constantFrom(..."/?&=%:@#[]a4\u00E4"), character) });
  fc.assert(
    fc.property(part, part, (before, behind) => {
      const uri = `mongodb://${before}@__this_is_a_placeholder__${behind}`;
      expect(read(URL, uri)).toEqual(read(copy.URL, uri));
    }),
    { numRuns: 2_000 },
  );
});

test("tables for passwords are loaded with the first one", () => {
  expect(isLoaded(/saslprep\/dist\/code-points/)).toBe(false);
  const { saslprep } = ofDriver("@mongodb-js/saslprep");
  // RFC 4013, section 3: a soft hyphen is mapped to nothing.
  expect(saslprep("I\u00ADX")).toBe("IX");
  expect(isLoaded(/saslprep\/dist\/code-points/)).toBe(true);
});

test("whoever else needs the rest of what Node has not built in gets it", () => {
  const require = createRequire(ofDriver.resolve("mongodb-connection-string-url"));
  expect(require("whatwg-url").parseURL("http://one.example/")).toMatchObject({ host: "one.example" });
});
