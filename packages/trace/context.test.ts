/** The cases are those of W3C's own tests of Trace Context, level 1. */
import { describe, expect, test } from "vitest";
import { readTraceparent, readTracestate, toTraceparent, traceHeaders, traceIds } from "./context.ts";

const TRACE = "12345678901234567890123456789012";
const SPAN = "1234567890123456";
const valid = `00-${TRACE}-${SPAN}-01`;

describe("traceparent", () => {
  test.each([
    [valid, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-ff`, true],
    [`00-${TRACE}-${SPAN}-fe`, false],
    [`cc-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, true],
    [`fe-${TRACE}-${SPAN}-00-`, false],
  ])("%s", (text, sampled) => {
    expect(readTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
  });

  test.each([
    ["none", undefined],
    ["nothing", ""],
    ["version 00 with more", `${valid}-what-the-future-will-be-like`],
    ["version 00 with a dash", `${valid}-`],
    ["more without a dash", `cc-${TRACE}-${SPAN}-01.what-the-future-will-not-be-like`],
    ["version ff", `ff-${TRACE}-${SPAN}-01`],
    ["a version with a dot", `.0-${TRACE}-${SPAN}-01`],
    ["a version that ends with a dot", `0.-${TRACE}-${SPAN}-01`],
    ["a long version", `000-${TRACE}-${SPAN}-01`],
    ["a short version", `0-${TRACE}-${SPAN}-01`],
    ["a version in capitals", `AA-${TRACE}-${SPAN}-01`],
    ["a trace id of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["a trace id with a dot", `00-.${TRACE.slice(1)}-${SPAN}-01`],
    ["a trace id that ends with a dot", `00-${TRACE.slice(1)}.-${SPAN}-01`],
    ["a trace id in capitals", `00-A${TRACE.slice(1)}-${SPAN}-01`],
    ["a long trace id", `00-${TRACE}3-${SPAN}-01`],
    ["a short trace id", `00-${TRACE.slice(1)}-${SPAN}-01`],
    ["a parent id of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["a parent id with a dot", `00-${TRACE}-.${SPAN.slice(1)}-01`],
    ["a parent id in capitals", `00-${TRACE}-A${SPAN.slice(1)}-01`],
    ["a long parent id", `00-${TRACE}-${SPAN}7-01`],
    ["a short parent id", `00-${TRACE}-${SPAN.slice(1)}-01`],
    ["flags with a dot", `00-${TRACE}-${SPAN}-.0`],
    ["flags in capitals", `00-${TRACE}-${SPAN}-0A`],
    ["long flags", `00-${TRACE}-${SPAN}-001`],
    ["short flags", `00-${TRACE}-${SPAN}-1`],
    ["two of them", `${valid}, ${valid}`],
    ["two of a later version", `cc-${TRACE}-${SPAN}-01, cc-${TRACE}-${SPAN}-01`],
  ])("is not: %s", (_, text) => expect(readTraceparent(text)).toBeUndefined());

  test("is written in version 00, with the flag that this version knows", () => {
    const read = readTraceparent(`cc-${TRACE}-${SPAN}-ff-more`);
    expect(read && toTraceparent(read)).toBe(valid);
  });
});

describe("tracestate", () => {
  const key = (length: number) => "z".repeat(length);
  const many = (count: number) => Array.from({ length: count }, (_, i) => `bar${i}=${i}`).join(",");
  test.each([
    "foo=1",
    "foo=1,bar=2",
    "foo@bar=1",
    "0tenant@vendor=1",
    `${key(256)}=1`,
    `${key(241)}@${key(14)}=1`,
    "abcdefghijklmnopqrstuvwxyz0123456789_-*/=1",
    "foo= !\"#$%&'()*+-./0123456789:;<>?@ABCXYZ[\\]^_`abcxyz{|}~",
    many(32),
  ])("%s", (text) => expect(readTracestate(text)).toBe(text));

  test("may have empty members, and spaces and tabs between them", () => {
    expect(readTracestate("foo=1 \t , \t bar=2, \t ,baz=3,")).toBe("foo=1,bar=2,baz=3");
  });

  test.each([
    ["none", undefined],
    ["nothing", ""],
    ["empty members", ", ,"],
    ["a member without a value", "foo"],
    ["an empty value", "foo="],
    ["an empty key", "=1"],
    ["a space in a key", "foo =1"],
    ["a capital", "FOO=1"],
    ["a dot in a key", "foo.bar=1"],
    ["a key that begins with a digit", "0foo=1"],
    ["no tenant", "@bar=1"],
    ["no vendor", "foo@=1"],
    ["two at signs", "foo@bar@baz=1"],
    ["a long key", `${key(257)}=1`],
    ["a long tenant", `${key(242)}@v=1`],
    ["a long vendor", `t@${key(15)}=1`],
    ["two equals signs", "foo=bar=baz"],
    ["a control character", "foo=1\u0001"],
    ["a long value", `foo=${"v".repeat(257)}`],
    ["a key twice", "foo=1,bar=2,foo=3"],
    ["33 members", many(33)],
    ["one that is wrong among others", "foo=1,bar,baz=3"],
  ])("is not: %s", (_, text) => expect(readTracestate(text)).toBeUndefined());

  test("is passed on up to 512 characters, without the long members and the last ones", () => {
    const long = `long=${"v".repeat(200)}`;
    const short = Array.from({ length: 10 }, (_, i) => `k${i}=${"v".repeat(57)}`);
    expect(readTracestate([short[0], long, ...short.slice(1)].join(","))).toBe(short.slice(0, 8).join(","));
    expect(readTracestate(`${key(256)}=${"v".repeat(256)}`)).toBeUndefined();
  });
  test("costs no more than its length", () => {
    const spaces = `foo=${" ".repeat(60_000)}`;
    expect(readTracestate(spaces)).toBeUndefined();
    expect(readTracestate(",".repeat(60_000))).toBeUndefined();
  });
});

test("calls get both headers, lines of the log both ids", () => {
  const trace = { traceId: TRACE, spanId: SPAN };
  expect(traceHeaders(trace)).toEqual({ traceparent: valid });
  expect(traceHeaders({ ...trace, state: "foo=1" })).toEqual({ traceparent: valid, tracestate: "foo=1" });
  expect(traceIds(trace)).toEqual({ trace_id: TRACE, span_id: SPAN });
  expect(traceIds(undefined)).toBeUndefined();
});
