/** A contract from a running server, which tells it by grpc.reflection (v1, or v1alpha where that is all it has). */
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { BrokenContract, type Contract, contractOf, isKnown, readFileDescriptor } from "./contract.ts";

type Question = ServerReflectionRequest["messageRequest"];
type Answer = ServerReflectionResponse["messageResponse"];
type Ask = (questions: readonly Question[]) => Promise<Answer[]>;

type Headers = Readonly<Record<string, string>>;

/** For each of the streams of questions: three are usual. */
const TIMEOUT_MS = 10_000;
/** Most streams of questions: each asks for what the files of the one before import. */
const ROUNDS = 50;
/** Most files that are taken from a server, and most of their bytes. */
const FILES = 20_000;
const BYTES = 256 * 1024 * 1024;

/**
 * The services of a server but those of the reflection itself, with all files that they are built on.
 *
 * @throws BrokenContract where an answer is broken; ConnectError where the server can't be asked
 */
export async function reflect(transport: Transport, headers: Headers = {}): Promise<Contract> {
  const { ask, services } = await listServices(transport, headers);
  const files = new Map<string, FileDescriptorProto>();
  let bytes = 0;
  const take = (subject: string, answer: Answer): FileDescriptorProto[] => {
    if (answer.case !== "fileDescriptorResponse") throw unexpected(subject, answer);
    const taken = answer.value.fileDescriptorProto.map((encoded) => {
      bytes += encoded.length;
      return readFileDescriptor(encoded, `What the server says of ${subject}`);
    });
    for (const file of taken) files.set(file.name, files.get(file.name) ?? file);
    if (files.size > FILES || bytes > BYTES)
      throw new BrokenContract(`The server has more than ${FILES} files, or ${BYTES} bytes of them.`);
    return taken;
  };

  const symbols = services.map((value): Question => ({ case: "fileContainingSymbol", value }));
  for (const [i, answer] of (await ask(symbols)).entries()) {
    const service = services[i] as string;
    if (!take(service, answer).some((file) => declares(file, service)))
      throw new BrokenContract(`The server lists ${service}, and sends a file for it that does not declare it.`);
  }
  for (let [round, missing] = [1, missingFrom(files, files.values())]; missing.length > 0; round++) {
    if (round > ROUNDS) throw new BrokenContract(`The server's files import one another more than ${ROUNDS} deep.`);
    const answers = await ask(missing.map((value): Question => ({ case: "fileByFilename", value })));
    const taken = answers.flatMap((answer, i) => take(missing[i] as string, answer));
    for (const name of missing)
      if (!files.has(name)) throw new BrokenContract(`The server was asked for ${name} and sent another file.`);
    missing = missingFrom(files, taken);
  }
  const contract = contractOf(files.values());
  const listed = new Set(services);
  return { ...contract, services: contract.services.filter(({ typeName }) => listed.has(typeName)) };
}

/** Asks by v1, and by v1alpha where the server does not know that. Their messages differ only in the names of their package. */
async function listServices(transport: Transport, headers: Headers) {
  const question: Question = { case: "listServices", value: "" };
  for (const version of [ServerReflection, ServerReflectionAlpha as unknown as typeof ServerReflection]) {
    const ask = asking(transport, version, headers);
    try {
      const [answer] = await ask([question]);
      if (answer?.case !== "listServicesResponse") throw unexpected("its services", answer);
      const names = answer.value.service.map(({ name }) => name);
      return { ask, services: [...new Set(names)].filter((name) => !name.startsWith("grpc.reflection.")) };
    } catch (error) {
      if (!(error instanceof ConnectError && error.code === Code.Unimplemented)) throw error;
    }
  }
  throw new BrokenContract(
    "The server has no reflection, neither grpc.reflection.v1 nor v1alpha. Switch it on there, or give the contract as a descriptor set.",
  );
}

/** One stream for all the questions: the answers come in their order. */
function asking(transport: Transport, version: typeof ServerReflection, headers: Headers): Ask {
  const { serverReflectionInfo } = createClient(version, transport);
  return async (questions) => {
    if (questions.length === 0) return [];
    const requests = (async function* () {
      for (const messageRequest of questions) yield { messageRequest };
    })();
    const answers: Answer[] = [];
    for await (const { messageResponse } of serverReflectionInfo(requests, { headers, timeoutMs: TIMEOUT_MS })) {
      answers.push(messageResponse);
      if (answers.length > questions.length) break;
    }
    if (answers.length !== questions.length)
      throw new BrokenContract(
        `The server's reflection was asked ${questions.length} questions and gave ${answers.length} answers.`,
      );
    return answers;
  };
}

function unexpected(subject: string, answer: Answer | undefined): BrokenContract {
  const said =
    answer?.case === "errorResponse"
      ? `answers with the error ${Code[answer.value.errorCode] ?? answer.value.errorCode}: ${answer.value.errorMessage}`
      : `answers with ${answer?.case ?? "nothing"}`;
  return new BrokenContract(`The server's reflection was asked for ${subject} and ${said}`);
}

const declares = (file: FileDescriptorProto, service: string): boolean =>
  file.service.some(({ name }) => (file.package === "" ? name : `${file.package}.${name}`) === service);

/** What the files that came last import that is neither there nor known here anyway. */
const missingFrom = (
  files: ReadonlyMap<string, FileDescriptorProto>,
  last: Iterable<FileDescriptorProto>,
): string[] => [
  ...new Set([...last].flatMap(({ dependency }) => dependency).filter((name) => !files.has(name) && !isKnown(name))),
];
