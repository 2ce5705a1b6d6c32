// `node check.mjs http://127.0.0.1:8080` asks the example's server what it promises.
import { deepEqual, equal, match } from "node:assert/strict";

const base = process.argv[2];

/** Waits for a server that is just starting. */
async function ask(path, init) {
  for (let tries = 0; ; tries++) {
    try {
      const response = await fetch(base + path, init);
      // Nor is the service there at once.
      if (response.status === 503) throw new Error(await response.text());
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch (error) {
      if (tries >= 300) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
const post = (body) => ask("/books", { method: "POST", body, headers: { "content-type": "application/json" } });

const book = '{"isbn":9007199254740993,"title":"The Origin"}';
const added = await post(book);
deepEqual([added.status, added.headers.get("location"), added.text], [201, "/books/9007199254740993", book]);
equal((await ask("/books/9007199254740993")).text, book);

/** Of a google.rpc.Status: the reason of the transcoder's own errors is in its details. */
const errorOf = async (answer) => {
  const { status, text } = await answer;
  const { code, message, details } = JSON.parse(text);
  return [status, details[0]?.reason ?? code, message];
};
const reasonOf = async (answer) => (await errorOf(answer))[1];
deepEqual(await errorOf(ask("/books/7")), [404, 5, "There is no book 7."]);
deepEqual(await errorOf(ask("/books/x")), [400, "INVALID_ID", "isbn: must be an integer"]);
deepEqual(await errorOf(post('{"isbn":0,"title":"a"}')), [400, "VALIDATION_FAILED", "isbn: must be greater than 0"]);
equal(await reasonOf(post('{"isbn":1,"isbn":1}')), "MALFORMED_JSON");
equal(await reasonOf(ask("/shelves")), "ROUTE_NOT_FOUND");
equal(await reasonOf(ask("/books", { method: "PUT" })), "METHOD_NOT_ALLOWED");
equal((await ask("/books/1%")).status, 400);

const document = JSON.parse((await ask("/openapi.json")).text);
match(document.openapi, /^3\.1\./);
deepEqual(Object.keys(document.paths), ["/books/{isbn}", "/books"]);
process.stdout.write(`Node ${process.versions.node}: the example serves what it promises\n`);
