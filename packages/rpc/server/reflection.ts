/** grpc.reflection v1 and v1alpha: tells tools such as `buf curl` and grpcurl what a server offers. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AnyDesc, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { until } from "./until.ts";

/** How long one stream is served: less than `requestMs`, after which a request that is still arriving is reset. */
export const STREAM_LIMIT_MS = 25_000;

/** Serves reflection of `services` and of the reflection services themselves, until `stopping` aborts. */
export function serveReflection(
  router: ConnectRouter,
  services: readonly DescService[],
  stopping: AbortSignal,
  streamLimitMs = STREAM_LIMIT_MS,
): void {
  /** Created for the first request, because encoding all descriptors would add 15 ms to a start. */
  let answer: ReturnType<typeof createAnswers> | undefined;
  async function* serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
    answer ??= createAnswers([...services, ServerReflection, ServerReflectionAlpha]);
    const inTime = until(AbortSignal.timeout(streamLimitMs), requests, tooLong);
    for await (const request of until(stopping, inTime, goneSoon)) {
      await nextTurn(); // an answer is a thousand times as large as its request, and thousands may have arrived together
      yield { validHost: request.host, originalRequest: request, messageResponse: answer(request.messageRequest) };
    }
  }
  router.service(ServerReflection, { serverReflectionInfo });
  // The two versions differ only in their names.
  router.service(ServerReflectionAlpha, { serverReflectionInfo } as never);
}

function createAnswers(services: readonly DescService[]) {
  const index = indexOf(services);

  const encoded = new Map(
    [...index.files.values()].map((file) => [file, toBinary(FileDescriptorProtoSchema, file.proto)]),
  );

  const files = (file: DescFile | undefined) => {
    if (file === undefined) return failure(Code.NotFound, "not found");
    const fileDescriptorProto = [...withImports(file)].map((one) => encoded.get(one) as Uint8Array);
    return { case: "fileDescriptorResponse", value: { fileDescriptorProto } } as const;
  };

  return (question: ServerReflectionRequest["messageRequest"]) => {
    switch (question.case) {
      case "listServices":
        return {
          case: "listServicesResponse",
          value: { service: services.map(({ typeName }) => ({ name: typeName })) },
        } as const;
      case "fileByFilename":
        return files(index.files.get(question.value));
      case "fileContainingSymbol":
        return files(index.symbols.get(question.value));
      case "fileContainingExtension":
        return files(index.extensions.get(question.value.containingType)?.get(question.value.extensionNumber));
      case "allExtensionNumbersOfType": {
        const extensionNumber = [...(index.extensions.get(question.value)?.keys() ?? [])];
        if (!index.symbols.has(question.value)) return failure(Code.NotFound, "not found");
        return {
          case: "allExtensionNumbersResponse",
          value: { baseTypeName: question.value, extensionNumber },
        } as const;
      }
      default:
        return failure(Code.InvalidArgument, "message_request is missing");
    }
  };
}

const failure = (errorCode: Code, errorMessage: string) =>
  ({ case: "errorResponse", value: { errorCode, errorMessage } }) as const;

/** Every file that the services need, or the details of their errors, by its name and by what it declares. */
function indexOf(services: readonly DescService[]) {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  const roots = [...services.map(({ file }) => file), file_google_rpc_error_details];
  for (const file of roots.flatMap((root) => [...withImports(root)])) {
    files.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      for (const name of [type.typeName, ...namesWithin(type)]) symbols.set(name, file);
      if (type.kind === "extension") {
        const numbers = extensions.get(type.extendee.typeName) ?? new Map<number, DescFile>();
        extensions.set(type.extendee.typeName, numbers.set(type.number, file));
      }
    }
  }
  return { files, symbols, extensions };
}

/** Full names of what a type declares. Values of an enum are siblings of the enum (descriptor.proto, EnumValueDescriptorProto). */
function namesWithin(type: AnyDesc): string[] {
  switch (type.kind) {
    case "service":
      return type.methods.map(({ name }) => `${type.typeName}.${name}`);
    case "message":
      return [...type.fields, ...type.oneofs].map(({ name }) => `${type.typeName}.${name}`);
    case "enum":
      return type.values.map(({ name }) => type.typeName.slice(0, -type.name.length) + name);
    default:
      return [];
  }
}

/** A file and everything that it imports, directly or indirectly. */
function withImports(file: DescFile, found = new Set<DescFile>()): Set<DescFile> {
  if (found.has(file)) return found;
  found.add(file);
  for (const dependency of file.dependencies) withImports(dependency, found);
  return found;
}

const goneSoon = () => new ConnectError("the process stops", Code.Unavailable);
const tooLong = () => new ConnectError("the stream was open too long", Code.DeadlineExceeded);
