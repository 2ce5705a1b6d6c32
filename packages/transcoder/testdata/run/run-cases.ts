/** Runs cases as tests, on each of some ways. */
import type { DescMessage, DescMethod, FileRegistry, JsonValue, Registry } from "@bufbuild/protobuf";
import { fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Asked, ask } from "./ask.ts";
import { typesOf } from "./backend.ts";
import type { Case, CaseResponse } from "./case.ts";
import { servicesOf } from "./contract.ts";
import type { Way, WayKind } from "./way.ts";

/** Declares a test for each case and each way that can be told its options. */
export function runCases(contract: () => FileRegistry, cases: readonly Case[], ways: readonly WayKind[]): void {
  describe.each(ways)("$name", ({ open, takes }) => {
    let way: Way;
    let compiled: FileRegistry;
    beforeAll(async () => {
      compiled = contract();
      way = await open(compiled);
    });
    afterAll(() => way.close());
    // One after another, because the service has one answer at a time; those with the same options together.
    const told = cases.filter(({ options = {} }) => takes(options));
    for (const one of Object.values(
      Object.groupBy(told, ({ options = {} }) => JSON.stringify(options)),
    ).flat() as Case[])
      test(one.name, () => checkCase(one, way, compiled));
  });
}

async function checkCase(
  { options = {}, request, rpc, answer = {}, response }: Case,
  way: Way,
  contract: FileRegistry,
) {
  const port = await way.portFor(options);
  await way.backend.prepare(answer);
  const asked = await ask(port, request);
  checkResponse(asked, response);
  // A service hears that a stream was given up when its caller has the answer already.
  const called = async () => (await way.backend.calls()).map(({ method }) => method);
  await expect.poll(called).toEqual(rpc ? [rpc.method] : []);
  const [call] = await way.backend.calls();
  if (!rpc || !call) return;
  const { input } = methodOf(contract, rpc.method);
  const registry = typesOf(contract);
  expect(call.messages).toEqual(rpc.messages.map((message) => asWritten(input, message, registry)));
  for (const [name, value] of Object.entries(rpc.headers ?? {}))
    expect([name, call.headers[name.toLowerCase()] ?? null]).toEqual([name, value]);
}

/** A case may write a message in any form that proto3 JSON allows. By its bytes a float is one of 32 bits. */
const asWritten = (desc: DescMessage, json: JsonValue, registry: Registry): JsonValue =>
  toJson(desc, fromBinary(desc, toBinary(desc, fromJson(desc, json, { registry }))), { registry });

function methodOf(contract: FileRegistry, name: string): DescMethod {
  const method = servicesOf(contract)
    .flatMap(({ methods }) => methods)
    .find((one) => `${one.parent.typeName}/${one.name}` === name);
  if (!method) throw new Error(`the contract has no RPC ${name}`);
  return method;
}

function checkResponse(asked: Asked, expected: CaseResponse): void {
  const text = asked.bytes.toString();
  expect({ status: asked.status, isBroken: asked.isBroken }, text).toEqual({
    status: expected.status,
    isBroken: expected.breaksOff ?? false,
  });
  for (const [name, value] of Object.entries(expected.headers ?? {}))
    expect([name, [asked.headers[name.toLowerCase()] ?? null].flat().join("\n") || null]).toEqual([name, value]);
  if (expected.text !== undefined) expect(text).toBe(expected.text);
  if (expected.bytes !== undefined) expect(asked.bytes.toString("base64")).toBe(expected.bytes);
  if (expected.body !== undefined) expect(JSON.parse(text)).toEqual(expected.body);
  if (expected.lines !== undefined) {
    expect(text).toMatch(/\n$|^$/);
    expect(
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toEqual(expected.lines);
  }
  if (expected.error) expect(partsOf(text, expected.error)).toEqual(expected.error);
}

/** Those parts of a google.rpc.Status that a case names. */
function partsOf(text: string, named: NonNullable<CaseResponse["error"]>) {
  const { code, message, details } = JSON.parse(text) as {
    code: number;
    message: string;
    details: readonly { readonly reason?: string; readonly fieldViolations?: readonly { readonly field: string }[] }[];
  };
  const reason = details.find((detail) => detail.reason !== undefined)?.reason;
  const field = details.flatMap(({ fieldViolations = [] }) => fieldViolations)[0]?.field;
  const all = { code, message, reason, field };
  return Object.fromEntries(Object.keys(named).map((name) => [name, all[name as keyof typeof all]]));
}
