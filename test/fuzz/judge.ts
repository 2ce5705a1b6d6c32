/** Checks what must be true of every answer, whatever was sent. Each function throws a Find if it is not. */
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { reasonsOf } from "connect-transcoder/errors";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { codeName } from "../api/cases/case.ts";
import { innerWorkings } from "../harness/inner-workings.ts";
import { expectThat, Find } from "./find.ts";
import type { HttpAnswer } from "./http1-answers.ts";

const statuses = new Map(reasonsOf(ErrorReasonSchema).map(({ code, status }) => [code, status]));
const rpcCodes = new Set(
  Object.values(Code)
    .filter((code) => typeof code === "number")
    .map((code) => codeName(code, Code)),
);

/** Codes of server faults, which no request may cause. */
const FAULTS = new Set(["INTERNAL", "UNKNOWN", "DATA_LOSS"]);
const SORRY = /Something went wrong|gave no answer/;

/** `sent` is what the caller sent, which an answer may quote. */
export function judgeText(text: string, sent: Buffer): void {
  expectThat(!SORRY.test(text), "an answer speaks of a fault of the server", text.slice(0, 500));
  for (const pattern of innerWorkings) {
    const [found] = pattern.exec(text) ?? [];
    if (found !== undefined && !sent.includes(found) && !sent.includes(Buffer.from(found, "latin1")))
      throw new Find("an answer tells of inner workings", `${found}: ${text.slice(0, 500)}`);
  }
}

/** Whether the request may still be carried out, even after the answer: cancelled, out of time, or unavailable. */
export const leavesInDoubt = (status: number): boolean => status === 499 || (status >= 500 && status !== 501);

/** Checks answers of HTTP, and of unary Connect, which uses it. `process` is the process that answered. */
export function judgeHttp({ status, headers, body }: HttpAnswer, process: string, sent: Buffer): void {
  if (process === "gateway") {
    const id = headers.get("x-request-id") ?? "";
    expectThat(/^[A-Za-z0-9._:/+=-]{1,128}$/.test(id), `an answer ${status} has no X-Request-Id`);
    expectThat(headers.get("api-version") === "1.0.0", `an answer ${status} has no API-Version`);
  }
  expectThat(!headers.has("set-cookie"), "an answer sets a cookie");
  if (status < 400) return;
  const text = unpacked(headers.get("content-encoding"), body).toString("utf8");
  judgeText(text, sent);
  if (!/^application\/(problem\+)?json/.test(headers.get("content-type") ?? "")) {
    // 501: a transfer coding. 505: a bidirectional stream over HTTP/1.1.
    expectThat([501, 503, 505].includes(status) || status < 500, `an answer ${status}`, text.slice(0, 500));
    // The services answer what is not an RPC in plain text; the gateway answers every error with a record.
    expectThat(
      process !== "gateway" || body.length === 0,
      `an answer ${status} of the gateway is no JSON`,
      text.slice(0, 500),
    );
    return;
  }
  if (body.length > 0) judgeRecord(status, text, process);
  else expectThat(status < 500 || status === 501, `an answer ${status}`); // to a HEAD with a transfer coding
}

/** The decompressed body. By default Connect compresses an answer as its request was. */
export function unpacked(encoding: string | undefined, body: Buffer): Buffer {
  try {
    return encoding === "br" ? brotliDecompressSync(body) : encoding === "gzip" ? gunzipSync(body) : body;
  } catch {
    throw new Find(`what should be ${encoding} is not`, body.toString("latin1").slice(0, 500));
  }
}

function judgeRecord(status: number, text: string, process: string): void {
  const record = parse(text);
  const { code, message } = record;
  if (typeof code === "string" && statuses.has(code)) {
    expectThat(
      record.status === status && statuses.get(code) === status,
      `the record of ${code} does not fit its status`,
      text,
    );
    expectThat(typeof message === "string" && message !== "", `the record of ${code} has no message`, text);
    expectThat(status !== 500 && status !== 502, `an answer ${status} ${code}`, text);
    return;
  }
  const rpcCode = `${code}`.toUpperCase();
  expectThat(rpcCodes.has(rpcCode), `an answer ${status} of ${process} is no record`, text);
  judgeRpcError(rpcCode, `${message ?? ""}`, { isReadable: true });
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text);
  } catch {
    throw new Find("the body of an error is not JSON", text.slice(0, 500));
  }
}

/** `isReadable` means that INTERNAL is a server fault here. It is not where an unreadable message gets it, as in gRPC. */
export function judgeRpcError(code: string, message: string, { isReadable }: { readonly isReadable: boolean }): void {
  const isFault = FAULTS.has(code) && (isReadable || code !== "INTERNAL");
  expectThat(!isFault, `an RPC fails with ${code}`, message.slice(0, 500));
  expectThat(!SORRY.test(message), "an RPC speaks of a fault of the server", message.slice(0, 500));
}
