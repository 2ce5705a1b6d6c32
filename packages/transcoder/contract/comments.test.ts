import { expect, test } from "vitest";
import { compileProtos } from "../fixtures/compile.ts";
import { commentsOf, commentText } from "./comments.ts";

test("comments by the full name of what they stand above, or behind", () => {
  const files = compileProtos({
    "a.proto": `syntax = "proto3";
      package a.v1;
      // A shelf.
      message Shelf {
        // Its name.
        string name = 1;
        int32 size = 2; // In books.
        // Within.
        message Board { string wood = 1; }
        // How it stands.
        enum Pose {
          // Nobody knows.
          POSE_UNSPECIFIED = 0;
        }
      }
      // All shelves.
      service Shelves {
        // Gets one.
        // Or none.
        rpc GetShelf(Shelf) returns (Shelf);
      }`,
  });
  const { file } = files.getMessage("a.v1.Shelf") ?? {};
  expect(commentsOf(file ? [file] : [])).toEqual({
    "a.v1.Shelf": "A shelf.",
    "a.v1.Shelf.name": "Its name.",
    "a.v1.Shelf.size": "In books.",
    "a.v1.Shelf.Board": "Within.",
    "a.v1.Shelf.Pose": "How it stands.",
    "a.v1.Shelf.Pose.POSE_UNSPECIFIED": "Nobody knows.",
    "a.v1.Shelves": "All shelves.",
    "a.v1.Shelves.GetShelf": "Gets one. Or none.",
  });
});

test.each([
  [" one\n line\n\n another\n", "one line\n\nanother"],
  [" a list:\n - one\n   and more\n - two\n", "a list:\n- one and more\n- two"],
  [" # Title\n text\n", "# Title\ntext"],
  [" like:\n ```\n a\n   b\n ```\n end\n", "like:\n```\na\n  b\n```\nend"],
  [" A [Book][acme.v1.Book], or [][acme.v1.Tome].", "A Book, or acme.v1.Tome."],
  [" Told. (-- api-linter: off\n because --)\n buf:lint:ignore ENUM\n", "Told."],
  [" (-- never ends", "(-- never ends"],
])("%j is %j", (comment, text) => expect(commentText(comment)).toBe(text));

test.each([
  ["See [Book][acme.v1.Book], or [acme.v1.Book][].", "See Book, or acme.v1.Book."],
  ["The value at `values[i][j]`, arr[0][1].", "The value at `values[i][j]`, arr[0][1]."],
  ["~~~\na\nb\n~~~", "~~~\na\nb\n~~~"],
  ["```x```\na\nb", "```x``` a b"],
])("%j is %j", (comment, text) => {
  expect(commentText(comment)).toBe(text);
});
