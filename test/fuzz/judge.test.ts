/** What a run is after is really found: answers that no client should ever see. */
import { describe, expect, test } from "vitest";
import { readAnswers } from "./http1-answers.ts";
import { judgeHttp, judgeRpcError, judgeText } from "./judge.ts";
import { judgeRpc } from "./rpc-answers.ts";

const NOTHING = Buffer.alloc(0);
const answer = (status: number, body: string, more = "") =>
  Buffer.from(
    `HTTP/1.1 ${status} Text\r\nx-request-id: a\r\napi-version: 1.0.0\r\ncontent-type: application/json\r\n${more}` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
const record = (status: number, code: string, message = "wrong") => JSON.stringify({ code, message, status });
function judged(bytes: Buffer, methods = ["GET"], isCut = false): number[] {
  const answers = readAnswers(bytes, methods, isCut);
  for (const one of answers) judgeHttp(one, "gateway", NOTHING);
  return answers.map(({ status }) => status);
}

test.each<[string, Buffer, number[]]>([
  ["a record", answer(400, record(400, "INVALID_QUERY")), [400]],
  ["several answers", Buffer.concat([answer(200, "[]"), answer(404, record(404, "ROUTE_NOT_FOUND"))]), [200, 404]],
  ["an interim answer", Buffer.concat([Buffer.from("HTTP/1.1 100 Continue\r\n\r\n"), answer(200, "[]")]), [200]],
  ["a transfer coding", answer(501, record(501, "NOT_IMPLEMENTED")), [501]],
  ["an error of Connect", answer(404, '{"code":"not_found","message":"wrong"}'), [404]],
  ["that there is too much to do", answer(503, record(503, "OVERLOADED")), [503]],
])("fine: %s", (_, bytes, statuses) => expect(judged(bytes)).toEqual(statuses));

test.each<[string, Buffer, RegExp]>([
  ["an error of the server", answer(500, record(500, "INTERNAL")), /500 INTERNAL/],
  ["an error of a service", answer(502, record(502, "UPSTREAM_ERROR")), /502/],
  ["INTERNAL of unary Connect", answer(500, '{"code":"internal","message":"x"}'), /INTERNAL/],
  ["a code that there is not", answer(400, record(400, "NO_IDEA")), /no record/],
  ["a status that is not the code's", answer(400, record(404, "PET_NOT_FOUND")), /does not fit/],
  ["no message", answer(400, record(400, "INVALID_ID", "")), /no message/],
  ["no JSON", answer(400, "wrong"), /not JSON/],
  ["a stack", answer(400, record(400, "INVALID_ID", "at read (node:fs:1:2)")), /inner workings/],
  ["a cookie", answer(200, "[]", "set-cookie: a=b\r\n"), /cookie/],
  ["no request id", Buffer.from("HTTP/1.1 204 No\r\napi-version: 1.0.0\r\n\r\n"), /X-Request-Id/],
  ["half a body", answer(200, "[]").subarray(0, -1), /not complete/],
  ["half a head", Buffer.from("HTTP/1.1 200 OK\r\nx: "), /do not end/],
  ["bytes between answers", Buffer.concat([answer(200, "[]"), Buffer.from("x\r\n\r\n")]), /no answer/],
  ["a bare line feed in a header", answer(200, "[]", "x: a\nb: c\r\n"), /not well-formed/],
  ["two lengths", answer(200, "[]", "content-length: 5\r\n"), /no number/],
  ["a chunk without a size", Buffer.from("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n\r\n"), /no size/],
])("a find: %s", (_, bytes, problem) => expect(() => judged(bytes)).toThrow(problem));

test("what was cut off may be incomplete, and what the caller said may be quoted", () => {
  expect(judged(answer(200, "[]").subarray(0, -1), ["GET"], true)).toEqual([]);
  expect(() => judgeText("node:fs is no name", Buffer.from("node:fs"))).not.toThrow();
});

describe("RPCs", () => {
  const grpc = (status: string, message: string) => ({
    status: 200,
    headers: new Map([["content-type", "application/grpc"]]),
    body: NOTHING,
    trailers: new Map([...(status ? [["grpc-status", status] as const] : []), ["grpc-message", message]]),
  });
  const at = { process: "pet", sent: NOTHING, isCut: false };
  test("give their code", () => expect(judgeRpc(grpc("5", "no"), at)).toBe("NOT_FOUND"));
  test("a message that can't be read is INTERNAL in gRPC alone", () => {
    expect(judgeRpc(grpc("13", "premature EOF"), at)).toBe("INTERNAL");
    expect(() => judgeRpcError("INTERNAL", "premature EOF", { isReadable: true })).toThrow(/INTERNAL/);
  });
  test.each([
    ["UNKNOWN", "2", "oops", /UNKNOWN/],
    ["a fault of the server", "13", "Something went wrong in the petstore.", /fault/],
    ["no status", "", "", /no status/],
  ])("a find: %s", (_, status, message, problem) => expect(() => judgeRpc(grpc(status, message), at)).toThrow(problem));
  test("a message that is not complete is a find", () => {
    const half = { ...grpc("0", ""), body: Buffer.from([0, 0, 0, 0, 9, 1]) };
    expect(() => judgeRpc(half, at)).toThrow(/not complete/);
  });
});
