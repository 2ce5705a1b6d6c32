/**
 * Proto3 JSON by cases like those of protobuf's own conformance tests: what a text is read as, and written as again. What is
 * unpopulated is left out, as there.
 */
import { create, type DescMessage, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createCodec } from "./contract/codec.ts";
import { allTypes, typeNamed } from "./fixtures/all-types.ts";
import { messageReader } from "./request/decode.ts";
import { parseJson } from "./request/json.ts";
import { messageWriter } from "./response/encode.ts";

const All = typeNamed("all.v3.All");
const Old = typeNamed("all.v2.Old");
const registry = () => allTypes;
const proto3 = createCodec({ registry, omitUnpopulated: true });
const exact = createCodec({ codec: "exact", registry, omitUnpopulated: true });

const read = (text: string, desc = All, codec = proto3) =>
  messageReader(desc, codec)(parseJson(new TextEncoder().encode(text), 100), {
    strict: true,
    jsonNamesOnly: false,
    depth: 1,
  }) as never;

/** Through the binary form, as it reaches a service. */
function again(text: string, desc: DescMessage = All, codec = proto3): string {
  const message = read(text, desc, codec);
  const received = fromBinary(desc, toBinary(desc, message));
  expect(received).toEqual(message);
  return messageWriter(desc, codec)(received);
}

const same = [
  '{"optionalInt32":-2147483648}',
  '{"optionalInt64":"-9223372036854775808"}',
  '{"optionalUint64":"18446744073709551615"}',
  '{"optionalText":"9007199254740993"}',
  '{"optionalFloat":1.5}',
  '{"optionalDouble":"NaN"}',
  '{"optionalDouble":"-Infinity"}',
  '{"optionalBool":true}',
  '{"optionalString":"\\u0000"}',
  '{"optionalString":"😁"}',
  '{"optionalBytes":"AQI="}',
  '{"optionalColour":"COLOUR_BLUE"}',
  '{"optionalColour":7}',
  '{"optionalInner":{"a":1234,"all":{"optionalInner":{"a":1}}}}',
  '{"maybe":0}',
  '{"maybeInner":{}}',
  '{"repeatedInt64":["1","-9223372036854775808"]}',
  '{"repeatedColour":["COLOUR_UNSPECIFIED","COLOUR_RED"]}',
  '{"mapString":{"__proto__":"a","":"b"}}',
  '{"mapInt64":{"-1":"2"}}',
  '{"mapBool":{"true":{"a":1},"false":{}}}',
  '{"mapValue":{"a":null,"b":[1]}}',
  '{"mapStruct":{"a":{"b":{"c":[true]}}}}',
  '{"duration":"315576000000s"}',
  '{"duration":"-315576000000s"}',
  '{"duration":"1.000340012s"}',
  '{"duration":"-0.500s"}',
  '{"duration":"0s"}',
  '{"timestamp":"0001-01-01T00:00:00Z"}',
  '{"timestamp":"9999-12-31T23:59:59.999999999Z"}',
  '{"mask":"foo,barBaz"}',
  '{"mask":""}',
  '{"struct":{"nullValue":null,"intValue":1234,"boolValue":true,"list":[0,"",{"a":[]}],"__proto__":{"b":1}}}',
  '{"value":null}',
  '{"value":1}',
  '{"value":"x"}',
  '{"value":[0,null,"hello",{}]}',
  '{"value":{"a":{"b":false}}}',
  '{"list":[0,"hello",[null]]}',
  '{"values":[null,1,{}]}',
  '{"structs":[{},{"a":1}]}',
  '{"nulls":[null]}',
  '{"empty":{}}',
  '{"wrappedBool":false,"wrappedInt64":"0","wrappedString":"","wrappedBytes":"","wrappedDouble":"Infinity"}',
  '{"wrapped":["0","18446744073709551615"]}',
  '{"durations":["0s","1s"]}',
  '{"oneUint32":0}',
  '{"oneInner":{}}',
  '{"oneNull":null}',
  '{"oneWrapped":0}',
  '{"oneStruct":{"a":1}}',
  '{"oneValue":null}',
  '{"fieldname1":"1","fieldName2":"2","FieldName3":"3","field0name5":"5","@other":"6"}',
  '{"any":{}}',
  '{"any":{"@type":"type.googleapis.com/all.v3.Inner","a":12345}}',
  '{"any":{"@type":"example.com/x/all.v3.Inner"}}',
  '{"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1.500s"}}',
  '{"any":{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"5"}}',
  '{"any":{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"foo":1}}}',
  '{"any":{"@type":"type.googleapis.com/google.protobuf.Value","value":null}}',
  '{"any":{"@type":"type.googleapis.com/google.protobuf.Any","value":{"@type":"type.googleapis.com/all.v3.Inner","a":1}}}',
  '{"any":{"@type":"type.googleapis.com/google.protobuf.Empty"}}',
];

test.each(same)("%s is written as it was read", (text) => {
  expect(again(text)).toBe(text);
  // protobuf-es, whose numbers are those of JavaScript, agrees.
  expect(JSON.parse(text)).toEqual(toJson(All, read(text), { registry: allTypes }));
});

test.each([
  // Numbers and strings stand for one another, whatever their form.
  ['{"optionalInt64":9007199254740993}', '{"optionalInt64":"9007199254740993"}'],
  ['{"optionalUint64":18446744073709551615}', '{"optionalUint64":"18446744073709551615"}'],
  ['{"optionalInt32":"1"}', '{"optionalInt32":1}'],
  ['{"optionalInt32":1e5}', '{"optionalInt32":100000}'],
  ['{"optionalInt32":"1e5"}', '{"optionalInt32":100000}'],
  ['{"optionalInt32":1.000}', '{"optionalInt32":1}'],
  ['{"optionalDouble":"1.5e0"}', '{"optionalDouble":1.5}'],
  ['{"wrappedInt64":1}', '{"wrappedInt64":"1"}'],
  ['{"optionalColour":1}', '{"optionalColour":"COLOUR_RED"}'],
  ['{"optionalColour":-1.0}', '{"optionalColour":"COLOUR_BLUE"}'],
  // Any base64.
  ['{"optionalBytes":"-_"}', '{"optionalBytes":"+w=="}'],
  ['{"optionalBytes":"AQI"}', '{"optionalBytes":"AQI="}'],
  // Both names of a field.
  ['{"optional_int32":1,"_field_name3":"3","named":"6"}', '{"optionalInt32":1,"FieldName3":"3","@other":"6"}'],
  // Null is unset, wherever it is no value.
  [
    '{"optionalInt32":null,"optionalString":null,"optionalColour":null,"optionalInner":null,"maybe":null,"repeatedInt64":null,' +
      '"mapString":null,"duration":null,"struct":null,"list":null,"any":null,"wrappedInt64":null,"values":null}',
    "{}",
  ],
  ['{"oneUint32":null,"oneInner":null,"oneWrapped":7}', '{"oneWrapped":7}'],
  ['{"nullValue":null}', "{}"],
  ['{"oneNull":"NULL_VALUE"}', '{"oneNull":null}'],
  ['{"timestamp":"1970-01-01t08:00:01.5+08:00"}', '{"timestamp":"1970-01-01T00:00:01.500Z"}'],
  ['{"duration":"1.5s"}', '{"duration":"1.500s"}'],
  [
    '{"any":{"value":"1.5s","@type":"type.googleapis.com/google.protobuf.Duration"}}',
    '{"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1.500s"}}',
  ],
])("%s is written as %s", (text, written) => {
  expect(again(text)).toBe(written);
});

test.each([
  ['{"optionalInt32":"12abc"}', "optionalInt32: must be an integer"],
  ['{"optionalInt32":" 1"}', "optionalInt32: must be an integer"],
  ['{"optionalInt32":""}', "optionalInt32: must be an integer"],
  ['{"optionalInt32":"0x1"}', "optionalInt32: must be an integer"],
  ['{"optionalInt32":1.5}', "optionalInt32: must be an integer"],
  ['{"optionalInt32":"2147483648"}', "optionalInt32: must be from -2147483648 to 2147483647"],
  ['{"optionalUint64":"18446744073709551616"}', "optionalUint64: must be from 0 to 18446744073709551615"],
  ['{"optionalInt64":true}', "optionalInt64: must be an integer"],
  ['{"optionalFloat":3.502823e+38}', "optionalFloat: must be from -3.4028234663852886e+38 to 3.4028234663852886e+38"],
  ['{"optionalDouble":"1x"}', "optionalDouble: must be a number"],
  ['{"optionalDouble":"nan"}', "optionalDouble: must be a number"],
  ['{"optionalBool":"true"}', "optionalBool: must be true or false"],
  ['{"optionalString":1}', "optionalString: must be a string"],
  ['{"optionalBytes":"A"}', "optionalBytes: must be a string in base64"],
  ['{"optionalBytes":"AQ="}', "optionalBytes: must be a string in base64"],
  ['{"optionalBytes":"a b="}', "optionalBytes: must be a string in base64"],
  ['{"optionalColour":"red"}', "optionalColour: must be one of COLOUR_UNSPECIFIED, COLOUR_RED, COLOUR_BLUE"],
  ['{"optionalColour":1.5}', "optionalColour: must be one of COLOUR_UNSPECIFIED, COLOUR_RED, COLOUR_BLUE"],
  ['{"optionalColour":2147483648}', "optionalColour: must be one of COLOUR_UNSPECIFIED, COLOUR_RED, COLOUR_BLUE"],
  ['{"repeatedInt64":[null]}', "repeatedInt64[0]: must not be null"],
  ['{"repeatedInner":[{},null]}', "repeatedInner[1]: must not be null"],
  ['{"mapString":{"a":null}}', 'mapString["a"]: must not be null'],
  ['{"mapInt64":{"a":1}}', 'mapInt64["a"]: must be an integer'],
  ['{"mapInt64":{"0":1,"-0":2}}', "mapInt64: has a key twice: 0 and -0"],
  ['{"duration":"1.0000000001s"}', /^duration: must be seconds/],
  ['{"duration":"1"}', /^duration: must be seconds/],
  ['{"duration":"-315576000001s"}', /^duration: must be seconds/],
  ['{"timestamp":"0000-01-01T00:00:00Z"}', /^timestamp: must be a date and time/],
  ['{"mask":"foo,bar_bar"}', /^mask: must be names of fields/],
  ['{"struct":[]}', "struct: must be an object"],
  ['{"struct":{"a":{"b":[1e400]}}}', /^struct\.a\.b\[0\]: must have no number beyond/],
  ['{"list":{}}', "list: must be an array"],
  ['{"nullValue":0}', "nullValue: must be null"],
  ['{"wrappedBool":1}', "wrappedBool: must be true or false"],
  ['{"wrapped":["x"]}', "wrapped[0]: must be an integer"],
  ['{"oneUint32":1,"oneInner":{}}', "oneInner: must not be given together with oneUint32"],
  ['{"oneNull":null,"oneUint32":1}', "oneUint32: must not be given together with oneNull"],
  ['{"optionalInt32":1,"optional_int32":null}', "optional_int32: is another name of optionalInt32, which is given too"],
  ['{"color":1}', "color: is not known here"],
  ['{"optionalInner":{"b":1}}', "optionalInner.b: is not known here"],
  ['{"any":[]}', "any: must be an object"],
  ['{"any":{"a":1}}', "any.@type: must name a type, such as type.googleapis.com/google.rpc.Status"],
  ['{"any":{"@type":""}}', "any.@type: names a type that is not known here: "],
  [
    '{"any":{"@type":"type.googleapis.com/no.Such"}}',
    "any.@type: names a type that is not known here: type.googleapis.com/no.Such",
  ],
  ['{"any":{"@type":"x/all.v3.Inner","a":"b"}}', "any.a: must be an integer"],
  ['{"any":{"@type":"x/google.protobuf.Duration","value":1}}', /^any\.value: must be seconds/],
  ['{"any":{"@type":"x/google.protobuf.Duration","seconds":1}}', "any.seconds: is not known here"],
  ['{"any":{"@type":"x/google.protobuf.Duration"}}', "any.value: is required"],
  ['{"any":{"@type":"x/all.v2.Old"}}', "any: lacks a required field of all.v2.Old"],
])("%s is an error", (text, sentence) => {
  let told = "";
  try {
    read(text);
  } catch (error) {
    told = (error as { sentence: string }).sentence;
  }
  if (typeof sentence === "string") expect(told).toBe(sentence);
  else expect(told).toMatch(sentence);
});

test.each([
  ["google.protobuf.Duration", '"1s"'],
  ["google.protobuf.Timestamp", '"2027-01-01T00:00:00Z"'],
  ["google.protobuf.FieldMask", '"a,bC"'],
  ["google.protobuf.Struct", '{"a":[1]}'],
  ["google.protobuf.Value", "null"],
  ["google.protobuf.ListValue", "[1,[]]"],
  ["google.protobuf.Int64Value", '"9223372036854775807"'],
  ["google.protobuf.Empty", "{}"],
])("%s by itself: %s", (name, text) => {
  expect(again(text, typeNamed(name))).toBe(text);
});

test("proto2: groups, closed enums, defaults and extensions", () => {
  const text =
    '{"name":"a","size":"LARGE","part":{"number":"1","sure":false},"children":[{"name":""}],"seven":0,' +
    '"[all.v2.weight]":"7","[all.v2.note]":{"text":"x"},"[all.v2.sizes]":["SMALL"]}';
  expect(again(text, Old)).toBe(text);
  expect(again('{"name":"","size":1}', Old)).toBe('{"name":"","size":"SMALL"}');
  expect(() => read('{"name":"","size":2}', Old)).toThrow("must be one of SMALL, LARGE");
  expect(() => read('{"name":"","[all.v2.height]":2}', Old)).toThrow("is not known here");
  expect(() => read('{"[all.v2.weight]":1}')).toThrow("is not known here");
});

test("an edition: presence and delimited messages", () => {
  const New = typeNamed("all.v4.New");
  const text = '{"name":"","part":{"number":"1"}}';
  expect(again(text, New)).toBe(text);
});

test("the exact codec: the same types, in its own numbers and names", () => {
  const text =
    '{"optionalInt64":9007199254740993,"optionalColour":"red","optionalText":9007199254740993,"repeatedColour":["unspecified"],' +
    '"duration":"1s","mask":"a,bC","struct":{"a":1},"value":null,"any":{"@type":"x/google.protobuf.Int64Value","value":9223372036854775807},' +
    '"wrappedInt64":-9223372036854775808,"nulls":[null],"oneWrapped":0}';
  expect(again(text, All, exact)).toBe(text);
  const refused = (part: string) => expect(() => read(part, All, exact));
  refused('{"wrappedInt64":"1"}').toThrow("must be an integer");
  refused('{"duration":null}').toThrow("must not be null");
  refused('{"any":null}').toThrow("must not be null");
});

const empty = create(All);
const written = (options: Parameters<typeof createCodec>[0], message = empty) =>
  JSON.parse(messageWriter(All, createCodec({ registry, ...options }))(message));

test("what is unpopulated is written as grpc-gateway does", () => {
  const shown = written({});
  expect(shown).toMatchObject({
    optionalInt32: 0,
    optionalInt64: "0",
    optionalColour: "COLOUR_UNSPECIFIED",
    optionalInner: null,
    repeatedInt64: [],
    mapString: {},
    duration: null,
    wrappedBool: null,
    nullValue: null,
    any: null,
  });
  for (const absent of ["maybe", "maybeInner", "oneUint32", "oneInner", "oneNull"])
    expect(shown).not.toHaveProperty(absent);
  expect(written({ omitUnpopulated: true })).toEqual({});
  expect(written({ codec: "exact" })).not.toHaveProperty("optionalInner");
  expect(written({ codec: "exact" })).not.toHaveProperty("optionalColour");
  expect(written({ codec: "exact", omitUnpopulated: true })).toEqual({});
});

test("names of the contract, and enums as numbers", () => {
  const message = create(All, { optionalColour: 1, fieldName2: "x", named: "y" } as never);
  const options = { omitUnpopulated: true, originalNames: true, enumNumbers: true };
  for (const codec of ["proto3", "exact"] as const)
    expect(written({ codec, ...options }, message)).toEqual({ optional_colour: 1, field_name2: "x", named: "y" });
});

test.each([
  [
    "a type that is not known",
    { any: { typeUrl: "x/no.Such", value: new Uint8Array() } },
    /type of an Any is not known/,
  ],
  ["bytes that are no such message", { any: { typeUrl: "x/all.v3.Inner", value: new Uint8Array([8]) } }, /./],
  ["a duration of two signs", { duration: { seconds: 1n, nanos: -1 } }, /is none in JSON/],
  ["a duration too long", { duration: { seconds: 315_576_000_001n, nanos: 0 } }, /is none in JSON/],
  ["a path that can't be read again", { mask: { paths: ["a__b"] } }, /can't be written as JSON/],
  ["NaN in a Struct", { struct: { a: [Number.NaN] } }, /can't have NaN in JSON/],
  ["NaN in a Value", { value: { kind: { case: "numberValue", value: Number.NaN } } }, /NaN/],
  ["a Value without one", { value: {} }, /must have a value/],
])("a service that sends %s is at fault", (_, init, problem) => {
  expect(() => written({}, create(All, init as never))).toThrow(problem);
});

test("an Any in an Any in an Any has an end", () => {
  const Any = typeNamed("google.protobuf.Any");
  let any = create(Any, { typeUrl: "x/google.protobuf.Empty" } as never);
  for (let i = 0; i < 120; i++)
    any = create(Any, { typeUrl: "x/google.protobuf.Any", value: toBinary(Any, any) } as never);
  expect(() => written({}, create(All, { any } as never))).toThrow("more than 100 messages within one another");
});
