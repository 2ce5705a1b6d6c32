/** The grammar of path templates, and what their variables may fill. */
import { describe, expect, test } from "vitest";
import { compileProtos } from "../fixtures/compile.ts";
import { jsonPath } from "./field-path.ts";
import { shapeOf, shownPath, wildcardNames } from "./shown-path.ts";
import { parseTemplate } from "./template.ts";

const message = compileProtos({
  "asked.proto": `syntax = "proto3";
    package asked.v1;
    enum Kind { KIND_UNSPECIFIED = 0; KIND_OLD = 1; }
    message Author { string given_name = 1; int64 id = 2; }
    message Book { string name = 1; Author author = 2; }
    message Asked {
      string name = 1;
      int64 shelf_id = 2;
      Kind kind = 3;
      Book book = 4;
      repeated string tags = 5;
      map<string, string> labels = 6;
      oneof by { string title = 7; int64 isbn = 8; Author writer = 9; Author editor = 10; }
      bytes key = 11;
    }`,
}).getMessage("asked.v1.Asked");
if (!message) throw new Error("no message");

const read = (template: string) => {
  const { segments, variables, customVerb } = parseTemplate(template, message);
  const shown = segments.map((segment) => ("literal" in segment ? segment.literal : { [segment.wildcard]: 1 }));
  const filled = variables.map(({ field, from, to, isMulti }) => [jsonPath(field), from, to, isMulti]);
  return [shown, filled, customVerb];
};
const [ONE, REST] = [{ "*": 1 }, { "**": 1 }];

test.each([
  ["/", [""], [], ""],
  ["/v1/books", ["v1", "books"], [], ""],
  ["/v1/{shelf_id}", ["v1", ONE], [["shelfId", 1, 2, false]], ""],
  ["/v1/{shelf_id=*}", ["v1", ONE], [["shelfId", 1, 2, false]], ""],
  ["/v1/{name=books}", ["v1", "books"], [["name", 1, 2, false]], ""],
  ["/v1/{name=shelves/*/books/*}", ["v1", "shelves", ONE, "books", ONE], [["name", 1, 5, true]], ""],
  ["/v1/{name=shelves/*}/books", ["v1", "shelves", ONE, "books"], [["name", 1, 3, true]], ""],
  ["/v1/{name=**}", ["v1", REST], [["name", 1, 2, true]], ""],
  ["/v1/{name=files/**}:watch", ["v1", "files", REST], [["name", 1, 3, true]], "watch"],
  [
    "/v1/{name=**}/a/{title}",
    ["v1", REST, "a", ONE],
    [
      ["name", 1, 2, true],
      ["title", 3, 4, false],
    ],
    "",
  ],
  ["/v1/*/books/**", ["v1", ONE, "books", REST], [], ""],
  ["/v1/books:lend", ["v1", "books"], [], "lend"],
  ["/v1/{book.author.given_name}", ["v1", ONE], [["book.author.givenName", 1, 2, false]], ""],
  [
    "/v1/{book.name=books/*}/{kind}",
    ["v1", "books", ONE, ONE],
    [
      ["book.name", 1, 3, true],
      ["kind", 3, 4, false],
    ],
    "",
  ],
  [
    "/v1/{isbn}/{key}",
    ["v1", ONE, ONE],
    [
      ["isbn", 1, 2, false],
      ["key", 2, 3, false],
    ],
    "",
  ],
  [
    "/v1/{writer.id}/{writer.given_name}",
    ["v1", ONE, ONE],
    [
      ["writer.id", 1, 2, false],
      ["writer.givenName", 2, 3, false],
    ],
    "",
  ],
  ["/a%20b/c+d/(e)", ["a b", "c+d", "(e)"], [], ""],
])("%s", (template, segments, variables, customVerb) => {
  expect(read(template)).toEqual([segments, variables, customVerb]);
});

describe("refused", () => {
  test.each([
    ["v1", "must start with a slash"],
    ["", "must start with a slash"],
    ["/v1/", "has an empty segment"],
    ["/v1//a", "has an empty segment"],
    ["/:lend", "has an empty segment"],
    ["/v1:", "has an empty segment"],
    ["/v1/{name", 'has a variable {name that does not end with "}" where it should'],
    ["/v1/{name=a", 'has a variable {name that does not end with "}" where it should'],
    ["/v1/{name=a:b}", 'has a variable {name that does not end with "}" where it should'],
    ["/v1/{name=}", "has an empty segment"],
    ["/v1/{}", "has a variable without a name"],
    ["/v1/{name={isbn}}", "has a variable within {name}"],
    ["/v1/{name=a/{isbn}}", "has a variable within {name}"],
    ["/v1/{name}s", 'has a "s" where none can be, behind "/v1/{name}"'],
    ["/v1/a{name}", 'has a "{" where none can be, behind "/v1/a"'],
    ["/v1/a:b:c", 'has a ":" where none can be, behind "/v1/a:b"'],
    ["/v1/a:b/c", 'has a "/" where none can be, behind "/v1/a:b"'],
    ["/v1/**/a/**", 'has "**" twice, so that nobody knows what belongs to which'],
    ["/v1/{name=**}/{title=a/**}", 'has "**" twice'],
    ["/v1/***", 'has a segment "***" that is neither plain text nor *, ** or {field}; encode other characters (%20)'],
    ["/v1/a b", 'has a segment "a b" that is neither'],
    ["/v1/%zz", 'has a segment "%zz" that is neither'],
    ["/v1/%ff", 'has a segment "%ff" that is neither'],
    ["/v1/é", 'has a segment "é" that is neither'],
    ["/a/../b", 'has a segment "..", which clients take for a way up'],
    ["/a/%2e", 'has a segment "%2e", which clients take for a way up'],
    ["/{name}/{name=a/*}", "has {name} twice"],
    ["/{nothing}", "has a variable that is no field: nothing is no field of asked.v1.Asked"],
    ["/{book.nothing}", "has a variable that is no field: book.nothing is no field of asked.v1.Asked"],
    ["/{name.x}", "has a variable that is no field: name.x is no field of asked.v1.Asked"],
    ["/{tags}", "has {tags}, which must not be repeated"],
    ["/{labels}", "has {labels}, which must not be repeated"],
    ["/{book}", "has {book}, which must be a scalar, an enum or another value that a text can tell"],
    ["/{shelf_id=a/*}", "has {shelf_id} with several segments, which must be a string"],
    ["/{kind=**}", "has {kind} with several segments, which must be a string"],
    ["/{title}/{isbn}", "fills both title and isbn of the oneof by"],
    ["/{writer.id}/{editor.id}", "fills both writer and editor of the oneof by"],
  ])("%s", (template, problem) => {
    expect(() => parseTemplate(template, message)).toThrow(`the path "${template}" ${problem}`);
  });
});

test.each([
  ["/", "/"],
  ["/v1/{shelf_id}", "/v1/{shelfId}"],
  ["/v1/{name=shelves/*/books/*}:lend", "/v1/shelves/{shelf}/books/{book}:lend"],
  [
    "/v1/{book.name=addresses/*/boxes/*/properties/*/me/*}",
    "/v1/addresses/{address}/boxes/{box}/properties/{property}/me/{me}",
  ],
  ["/v1/{name=*/*}/books/*", "/v1/{name}/{name2}/books/{book}"],
  ["/v1/{name=projects/*/files/**}", "/v1/projects/{project}/files/{name}"],
  ["/v1/{name=files/*}/copies/{title=files/*}", "/v1/files/{file}/copies/files/{file2}"],
  ["/v1/{book.author.given_name}", "/v1/{book.author.givenName}"],
  ["/*/{kind}/**", "/{segment}/{kind}/{segment2}"],
  ["/a%20b/c%7Bd+e", "/a%20b/c%7Bd+e"],
])("a document shows %s as %s", (template, shown) => {
  const parsed = parseTemplate(template, message);
  expect(shownPath(parsed, wildcardNames(parsed))).toBe(shown);
});

test("a shape is a template without its names", () => {
  const shape = (template: string) => shapeOf(parseTemplate(template, message));
  expect(shape("/v1/{name=shelves/*}:lend")).toBe("/v1/shelves/*:lend");
  expect(shape("/v1/shelves/{shelf_id}:lend")).toBe("/v1/shelves/*:lend");
  expect(shape("/v1/shelves/{name=**}")).toBe("/v1/shelves/**");
  expect(shape("/v1/%2A")).toBe("/v1/%2A");
});
