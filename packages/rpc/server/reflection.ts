/** grpc.reflection v1 and v1alpha: tells tools such as `buf curl` and grpcurl what a server offers. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AnyDesc, createRegistry, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { filesBelow } from "connect-transcoder/descriptors";
import { file_google_rpc_error_details } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { until } from "./until.ts";

/** How long one stream is served: less than `requestMs`, after which a request that is still arriving is reset. */
export const STREAM_LIMIT_MS = 25_000;

/** Most bytes of a question: it names a symbol or a file. */
const QUESTION_BYTES = 16 * 1024;

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
  router.service(ServerReflection, { serverReflectionInfo }, { readMaxBytes: QUESTION_BYTES });
  // The two versions differ only in their names.
  router.service(ServerReflectionAlpha, { serverReflectionInfo } as never, { readMaxBytes: QUESTION_BYTES });
}

function createAnswers(services: readonly DescService[]) {
  const files = filesBelow([...services.map(({ file }) => file), file_google_rpc_error_details]);
  const types = createRegistry(...files);
  const symbols = new Map([...types].flatMap((type) => namesIn(type).map((name) => [name, type.file])));
  const encoded = new Map(files.map((file) => [file, toBinary(FileDescriptorProtoSchema, file.proto)]));

  const withImports = (file: DescFile | undefined) => {
    if (file === undefined) return failure(Code.NotFound, "not found");
    const fileDescriptorProto = filesBelow([file]).map((one) => encoded.get(one) as Uint8Array);
    return response("fileDescriptorResponse", { fileDescriptorProto });
  };

  return (question: ServerReflectionRequest["messageRequest"]) => {
    switch (question.case) {
      case "listServices":
        return response("listServicesResponse", { service: services.map(({ typeName }) => ({ name: typeName })) });
      case "fileByFilename":
        return withImports(files.find(({ proto }) => proto.name === question.value));
      case "fileContainingSymbol":
        return withImports(symbols.get(question.value));
      case "fileContainingExtension": {
        const extendee = types.getMessage(question.value.containingType);
        return withImports(extendee && types.getExtensionFor(extendee, question.value.extensionNumber)?.file);
      }
      case "allExtensionNumbersOfType": {
        const extendee = types.getMessage(question.value);
        if (!extendee) return failure(Code.NotFound, "not found");
        const extensionNumber = [...types].flatMap((type) =>
          type.kind === "extension" && type.extendee.typeName === extendee.typeName ? type.number : [],
        );
        return response("allExtensionNumbersResponse", { baseTypeName: extendee.typeName, extensionNumber });
      }
      default:
        return failure(Code.InvalidArgument, "message_request is missing");
    }
  };
}

const response = <C extends string, V>(name: C, value: V) => ({ case: name, value }) as const;
const failure = (errorCode: Code, errorMessage: string) => response("errorResponse", { errorCode, errorMessage });

/** Full names of a type and of what it declares. Values of an enum are its siblings (descriptor.proto, EnumValueDescriptorProto). */
function namesIn(type: AnyDesc & { readonly typeName: string }): string[] {
  const { typeName } = type;
  switch (type.kind) {
    case "service":
      return [typeName, ...type.methods.map(({ name }) => `${typeName}.${name}`)];
    case "message":
      return [typeName, ...[...type.fields, ...type.oneofs].map(({ name }) => `${typeName}.${name}`)];
    case "enum":
      return [typeName, ...type.values.map(({ name }) => typeName.slice(0, -type.name.length) + name)];
    default:
      return [typeName];
  }
}

const goneSoon = () => new ConnectError("the process stops", Code.Unavailable);
const tooLong = () => new ConnectError("the stream was open too long", Code.DeadlineExceeded);
