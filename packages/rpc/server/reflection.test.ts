import { type DescFile, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { ServerReflection, type ServerReflectionRequest } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { defaultLimits } from "../http/limits.ts";
import { STREAM_LIMIT_MS, serveReflection } from "./reflection.ts";

type Question = ServerReflectionRequest["messageRequest"];

const transport = (limitMs?: number) =>
  createRouterTransport((router) => serveReflection(router, [CategoryService], new AbortController().signal, limitMs));

async function ask(...questions: Question[]) {
  const requests = (async function* () {
    for (const messageRequest of questions) yield { messageRequest };
  })();
  const answers = createClient(ServerReflection, transport()).serverReflectionInfo(requests);
  return (await Array.fromAsync(answers)).map(({ messageResponse }) => messageResponse);
}

test("lists the services and itself", async () => {
  const [answer] = await ask({ case: "listServices", value: "" });
  expect(answer?.case === "listServicesResponse" && answer.value.service.map(({ name }) => name)).toEqual([
    "petstore.category.v1.CategoryService",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
  ]);
});

describe("files", () => {
  const file = (CategoryService.file as DescFile).proto.name;
  test.each<[string, Question]>([
    ["a file", { case: "fileByFilename", value: file }],
    ["a service", { case: "fileContainingSymbol", value: "petstore.category.v1.CategoryService" }],
    ["an RPC", { case: "fileContainingSymbol", value: "petstore.category.v1.CategoryService.GetCategory" }],
    ["a message", { case: "fileContainingSymbol", value: "petstore.category.v1.GetCategoryRequest" }],
    ["a field", { case: "fileContainingSymbol", value: "petstore.category.v1.GetCategoryRequest.category_id" }],
    ["a oneof", { case: "fileContainingSymbol", value: "petstore.category.v1.WatchCategoriesResponse.response" }],
  ])("%s is answered with its file and all that it imports", async (_, question) => {
    const [answer] = await ask(question);
    if (answer?.case !== "fileDescriptorResponse") throw new Error(`${answer?.case}`);
    const files = answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    expect(files[0]?.name).toBe(file);
    expect(files[0]?.service.map(({ name }) => name)).toEqual(["CategoryService"]);
    const names = files.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(files.flatMap(({ dependency }) => dependency)));
    expect(new Set(names).size).toBe(names.length);
  });

  test.each([
    ["an enum", "petstore.common.v1.EventType", "petstore/common/v1/watch.proto"],
    [
      "its value, which stands beside it",
      "petstore.common.v1.EVENT_TYPE_UNSPECIFIED",
      "petstore/common/v1/watch.proto",
    ],
    ["what tells the reason of an error", "google.rpc.ErrorInfo", "google/rpc/error_details.proto"],
  ])("%s is found", async (_, value, name) => {
    const [answer] = await ask({ case: "fileContainingSymbol", value });
    if (answer?.case !== "fileDescriptorResponse") throw new Error(`${answer?.case}`);
    const [file] = answer.value.fileDescriptorProto;
    expect(fromBinary(FileDescriptorProtoSchema, file as Uint8Array).name).toBe(name);
  });

  test("an extension is found by its number, and listed with its type", async () => {
    const http = { containingType: "google.protobuf.MethodOptions", extensionNumber: 72295728 };
    const [found, all] = await ask(
      { case: "fileContainingExtension", value: { $typeName: "grpc.reflection.v1.ExtensionRequest", ...http } },
      { case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" },
    );
    expect(found?.case).toBe("fileDescriptorResponse");
    expect(all?.case === "allExtensionNumbersResponse" && all.value.extensionNumber).toContain(72295728);
  });
});

test.each<[string, Question, Code]>([
  ["an unknown name", { case: "fileContainingSymbol", value: "no.Such" }, Code.NotFound],
  ["an unknown file", { case: "fileByFilename", value: "no.proto" }, Code.NotFound],
  ["extensions of an unknown type", { case: "allExtensionNumbersOfType", value: "no.Such" }, Code.NotFound],
  ["no question", { case: undefined }, Code.InvalidArgument],
])("%s is an error of its own, and the next question is answered", async (_, question, code) => {
  const [first, second] = await ask(question, { case: "listServices", value: "" });
  expect(first).toMatchObject({ case: "errorResponse", value: { errorCode: code } });
  expect(second?.case).toBe("listServicesResponse");
});

test("v1alpha answers alike", async () => {
  const requests = (async function* () {
    yield { messageRequest: { case: "fileContainingSymbol" as const, value: CategoryService.typeName } };
  })();
  const answers = createClient(ServerReflectionAlpha, transport()).serverReflectionInfo(requests);
  const [answer] = await Array.fromAsync(answers);
  expect(answer?.messageResponse.case).toBe("fileDescriptorResponse");
});

test("a stream on which nothing more is asked ends", async () => {
  const silence = (async function* (): AsyncGenerator<{ messageRequest: Question }> {
    yield { messageRequest: { case: "listServices", value: "" } };
    await new Promise(() => {});
  })();
  const answers = createClient(ServerReflection, transport(50)).serverReflectionInfo(silence)[Symbol.asyncIterator]();
  expect((await answers.next()).value?.messageResponse.case).toBe("listServicesResponse");
  await expect(answers.next()).rejects.toMatchObject({ code: Code.DeadlineExceeded });
});

test("many questions at once leave time for others between them", async () => {
  let turns = 0;
  let counts = true;
  const count = () => {
    turns++;
    if (counts) setImmediate(count);
  };
  setImmediate(count);
  await ask(...Array.from({ length: 50 }, () => ({ case: "listServices", value: "" }) as const));
  counts = false;
  expect(turns).toBeGreaterThanOrEqual(50);
});

test("a stream is told that its time is over, before it is reset as a request that does not arrive", () => {
  expect(STREAM_LIMIT_MS).toBeLessThan(defaultLimits.requestMs);
});
