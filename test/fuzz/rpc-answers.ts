/** Reads and checks the answers of gRPC, gRPC-Web and Connect. */
import { Code } from "@connectrpc/connect";
import { codeName } from "../api/cases/case.ts";
import { expectThat } from "./find.ts";
import type { HttpAnswer } from "./http1-answers.ts";
import { judgeHttp, judgeRpcError, judgeText, leavesInDoubt, unpacked } from "./judge.ts";

interface Asked {
  readonly process: string;
  readonly sent: Buffer;
  /** The answer may be incomplete. */
  readonly isCut: boolean;
}

/** Returns the code of the failure; "OK" if there is none, undefined if the answer is incomplete. Throws Find. */
export function judgeRpc(answer: HttpAnswer, { process, sent, isCut }: Asked): string | undefined {
  const type = answer.headers.get("content-type") ?? "";
  const isGrpcWeb = type.startsWith("application/grpc-web");
  if (answer.status !== 200 || !/^application\/(grpc|connect\+)/.test(type)) {
    judgeHttp(answer, process, sent);
    return answer.status < 400 ? "OK" : leavesInDoubt(answer.status) ? undefined : "REFUSED";
  }
  const body = type.startsWith("application/grpc-web-text")
    ? Buffer.from(answer.body.toString(), "base64")
    : answer.body;
  const encoding = answer.headers.get(isGrpcWeb ? "grpc-encoding" : "connect-content-encoding");
  const end = endOf(body, encoding, isCut);
  const isReadable = process === "gateway";
  if (type.startsWith("application/connect+")) {
    if (end === undefined) return undefined;
    const { error } = JSON.parse(end.toString() || "{}") as { error?: { code?: string; message?: string } };
    if (error === undefined) return "OK";
    const code = `${error.code}`.toUpperCase();
    judgeText(error.message ?? "", sent);
    judgeRpcError(code, error.message ?? "", { isReadable });
    return code;
  }
  const fields = isGrpcWeb && end !== undefined ? fieldsIn(end.toString("latin1")) : answer.trailers;
  const status = fields.get("grpc-status") ?? answer.headers.get("grpc-status");
  const message = decodeURIComponent(fields.get("grpc-message") ?? answer.headers.get("grpc-message") ?? "");
  if (status === undefined && isCut) return undefined;
  expectThat(/^\d{1,2}$/.test(status ?? ""), "an answer of gRPC has no status", `${status} ${type}`);
  if (status === "0") return "OK";
  const code = codeName(Number(status), Code);
  judgeText(message, sent);
  judgeRpcError(code, message, { isReadable });
  return code;
}

/** Flags of a message, of gRPC-Web and of Connect. */
const END_OF_STREAM = 0x80 | 0x02;
const COMPRESSED = 0x01;

/**
 * Returns the message that ends a stream. In gRPC and similar protocols each message follows a byte of flags and four bytes of
 * its length. The last one may be compressed like any other (gRPC-Web: "10000001b: a compressed trailer").
 */
function endOf(body: Buffer, encoding: string | undefined, isCut: boolean): Buffer | undefined {
  let end: Buffer | undefined;
  let at = 0;
  while (at + 5 <= body.length) {
    const flags = body.readUInt8(at);
    const next = at + 5 + body.readUInt32BE(at + 1);
    if (next > body.length) break;
    expectThat(end === undefined, "an answer goes on behind the end of its stream");
    const message = body.subarray(at + 5, next);
    if ((flags & END_OF_STREAM) !== 0) end = (flags & COMPRESSED) !== 0 ? unpacked(encoding, message) : message;
    at = next;
  }
  expectThat(at === body.length || isCut, "the last message of an answer is not complete");
  return end;
}

const fieldsIn = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .split("\r\n")
      .filter(Boolean)
      .map(
        (line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()] as const,
      ),
  );
