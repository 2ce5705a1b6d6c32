import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { create, type FileRegistry, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, createRouterTransport } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { compileLibrary, compileProtos } from "../fixtures/compile.ts";
import { type AnswerQuestion, reflectionOf, serveReflection } from "../fixtures/reflection.ts";
import { contractOf, readDescriptorSet } from "./contract.ts";
import { reflect } from "./reflection.ts";
import { watchContract } from "./watch.ts";

const folder = mkdtempSync(join(tmpdir(), "sets-"));
afterAll(() => rmSync(folder, { recursive: true }));

const protosOf = (registry: FileRegistry) => [...registry.files].map(({ proto }) => proto);
const file = (name: string, ...dependency: string[]) =>
  create(FileDescriptorProtoSchema, { name, dependency, syntax: "proto3" });

describe("a descriptor set", () => {
  const path = join(folder, "set.binpb");
  const readBytes = (bytes: Uint8Array) => {
    writeFileSync(path, bytes);
    return readDescriptorSet(path);
  };
  const read = (files: ReturnType<typeof file>[]) =>
    readBytes(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: files })));

  test("has its services, in whatever order its files are", async () => {
    const { services, fingerprint } = await read(protosOf(compileLibrary()).reverse());
    expect(fingerprint).toBe((await read(protosOf(compileLibrary()))).fingerprint);
    expect(services.map(({ typeName }) => typeName)).toContain("foreign.library.v1.LibraryService");
  });
  test("need not bring along what is known anyway", async () => {
    const all = protosOf(compileLibrary());
    const { services } = await read(all.filter(({ name }) => !/^(google|transcoder)\//.test(name)));
    expect(services).toHaveLength(1);
  });
  test("without its imports says which one is missing, and how to get it", async () => {
    await expect(read([file("a.proto", "b.proto")])).rejects.toThrow(
      /^b.proto is missing, which a.proto imports\. .*--include_imports/,
    );
  });
  test("whose files import each other is refused", async () => {
    await expect(read([file("a.proto", "b.proto"), file("b.proto", "a.proto")])).rejects.toThrow("imports itself");
  });
  test("whose imports go deep is read", async () => {
    const deep = Array.from({ length: 20_000 }, (_, i) => file(`${i}.proto`, ...(i ? [`${i - 1}.proto`] : [])));
    expect((await read(deep.reverse())).services).toEqual([]);
  });
  test.each([
    ["nothing", ""],
    ["JSON", '{"file":[]}'],
    ["a contract as it is written", 'syntax = "proto3";'],
  ])("that is %s is no descriptor set, and the error says how to make one", async (_, text) => {
    await expect(readBytes(Buffer.from(text))).rejects.toThrow(/is no descriptor set.*buf build -o/);
  });
  test("that is not there is named", async () => {
    await expect(readDescriptorSet(join(folder, "none"))).rejects.toThrow(/none can't be read: ENOENT/);
  });
});

describe("reflection", () => {
  const from = (answer: AnswerQuestion, versions: ("v1" | "v1alpha")[] = ["v1"]) =>
    reflect(createRouterTransport((router) => serveReflection(router, answer, versions)));
  const library = reflectionOf(compileLibrary);

  test.each<["v1" | "v1alpha", boolean]>([
    ["v1", false],
    ["v1", true],
    ["v1alpha", false],
  ])("by %s, files with their imports: %s", async (version, withImports) => {
    const { services } = await from(reflectionOf(compileLibrary, withImports), [version]);
    expect(services.map(({ typeName }) => typeName)).toEqual(["foreign.library.v1.LibraryService"]);
    expect(services[0]?.methods.length).toBeGreaterThan(3);
  });
  test("a server without it is told so", async () => {
    await expect(from(library, [])).rejects.toThrow(/no reflection, neither .*descriptor set/);
  });
  test("another error is the server's", async () => {
    const failing: AnswerQuestion = () => {
      throw new Error("broken");
    };
    await expect(from(failing)).rejects.toMatchObject({ code: Code.Internal });
  });

  const files = (...fileDescriptorProto: Uint8Array[]) => ({
    case: "fileDescriptorResponse",
    value: { fileDescriptorProto },
  });
  test.each([
    [
      "a service without a file",
      "fileContainingSymbol",
      files(),
      /lists foreign.library.v1.LibraryService, and sends a file/,
    ],
    [
      "an error",
      "fileContainingSymbol",
      { case: "errorResponse", value: { errorCode: 5, errorMessage: "lost" } },
      /asked for foreign.library.v1.LibraryService and answers with the error NotFound: lost/,
    ],
    [
      "bytes that are no file",
      "fileContainingSymbol",
      files(Buffer.from("no")),
      /foreign.library.v1.LibraryService is no File/,
    ],
    ["no answer at all", "listServices", {}, /asked for its services and answers with nothing/],
    [
      "another file",
      "fileByFilename",
      files(toBinary(FileDescriptorProtoSchema, file("x.proto"))),
      /sent another file/,
    ],
  ])("%s is named", async (_, what, answer, message) => {
    const contract = compileProtos({
      "a.proto": 'syntax = "proto3"; package a; import "b.proto"; service S { rpc Get(b.M) returns (b.M); }',
      "b.proto": 'syntax = "proto3"; package b; message M {}',
    });
    const answering = what === "fileByFilename" ? reflectionOf(() => contract) : library;
    await expect(from((question) => (question.case === what ? answer : answering(question)))).rejects.toThrow(message);
  });

  test("imports without end have one", async () => {
    const contract = compileProtos({
      "a.proto": 'syntax = "proto3"; package a; import "b.proto"; service S { rpc Get(b.M) returns (b.M); }',
      "b.proto": 'syntax = "proto3"; package b; message M {}',
    });
    const answering = reflectionOf(() => contract);
    let asked = 0;
    const endless: AnswerQuestion = (question) => {
      if (question.case !== "fileByFilename") return answering(question);
      const name = String(question.value);
      const dependency = [`${++asked}.proto`];
      return files(toBinary(FileDescriptorProtoSchema, create(FileDescriptorProtoSchema, { name, dependency })));
    };
    await expect(from(endless)).rejects.toThrow(/more than 50 deep/);
    expect(asked).toBe(50);
  });
});

test("a contract is read again: what is broken is told once and the last good one stays", async () => {
  const one = contractOf([file("1.proto")]);
  const two = contractOf([file("2.proto")]);
  const stop = new AbortController();
  const readings = [one, new Error("away"), new Error("away"), two, two, one, two];
  const told: string[] = [];
  await watchContract({
    everyMs: 0,
    signal: stop.signal,
    fingerprint: one.fingerprint,
    async read() {
      const next = readings.shift();
      if (readings.length === 0) stop.abort();
      await pause(0);
      if (next instanceof Error) throw next;
      return next ?? two;
    },
    async onChange({ fingerprint }) {
      const name = fingerprint === two.fingerprint ? "2" : "1";
      told.push(name);
      if (name === "2" && told.filter((each) => each === "2").length === 1) throw new Error("can't be served");
    },
    onProblem: ({ message }) => void told.push(message),
  });
  expect(told).toEqual(["away", "2", "can't be served", "2"]);
});
