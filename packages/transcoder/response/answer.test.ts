import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { EXACT } from "../contract/codec.ts";
import { operationsOf } from "../contract/operations.ts";
import { compileLibrary, compileProtos, serviceOf } from "../fixtures/compile.ts";
import { answerer } from "./answer.ts";

const [operation] = operationsOf(
  serviceOf(
    compileProtos({
      "page.proto": `syntax = "proto3";
        package page.v1;
        import "google/api/annotations.proto";
        import "transcoder/v1/annotations.proto";
        message Nothing {}
        enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; }
        message Page {
          string etag = 1 [(transcoder.v1.field).header = "etag"];
          bytes digest = 2 [(transcoder.v1.field).header = "X-Digest"];
          int32 words = 3 [(transcoder.v1.field).header = "X-Words"];
          optional int32 number = 4 [(transcoder.v1.field).header = "X-Number"];
          optional Colour colour = 5;
        }
        service PageService {
          rpc GetPage(Nothing) returns (Page) { option (google.api.http) = {get: "/page"}; }
        }`,
    }),
    "page.v1.PageService",
  ),
);
if (!operation) throw new Error("no operation");
const answerOf = answerer(operation, { basePath: "", codec: EXACT });
const answer = (page: object) => answerOf(create(operation.method.output, page as never), new Headers(), "/page");

test("bytes travel as a header in base64, and a field that was not sent does not travel", () => {
  const { headers } = answer({ etag: '"1"', digest: new Uint8Array([251, 255]) });
  expect(headers).toEqual({ "cache-control": "no-cache", etag: '"1"', "x-digest": "+/8=", "x-words": "0" });
  expect(answer({ number: 0 }).headers["x-number"]).toBe("0");
});

test("the name of a header means the same however a contract spells it", () => {
  expect(operation.responseHeaders[0]?.name).toBe("ETag");
});

test("an enum that says that it is unspecified is absent, also where it was set to that", () => {
  expect(answer({ colour: 0 }).body).toBe("{}");
  expect(answer({ colour: 1 }).body).toBe('{"colour":"red"}');
});

describe("the link to the next page", () => {
  const [list] = operationsOf(serviceOf(compileLibrary(), "foreign.library.v1.LibraryService"));
  if (!list) throw new Error("no operation");
  const page = create(list.method.output, { nextPageToken: "t" } as never);
  const linkOf = (target: string) =>
    answerer(list, { basePath: "", codec: EXACT })(page, new Headers(), target).headers.link;

  test("repeats what was sent as it was sent, however it could be written too", () => {
    const text = "a:b/c;@$,d%20e".repeat(100);
    expect(linkOf(`/shelves/7/books?subject=${text}`)).toBe(
      `</shelves/7/books?subject=${text}&pageToken=t>; rel="next"`,
    );
  });

  test("ends where it says, whatever a caller sends that no URI may have", () => {
    expect(linkOf('/shelves/7>/books?subject=a>"b&subject=<c')).toBe(
      '</shelves/7%3E/books?subject=a%3E%22b&subject=%3Cc&pageToken=t>; rel="next"',
    );
  });
});
