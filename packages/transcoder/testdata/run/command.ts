/** The way through the command, which learns the contract by reflection. It starts processes. */
import { serveWith } from "../../command/fixtures/command.ts";
import type { CaseOptions } from "./case.ts";
import { before, grpcServer, onePerOptions, type WayKind } from "./way.ts";

/** What each option is on the command line; undefined for a value that it can't be told. */
const FLAGS: Readonly<Record<string, (value: never) => readonly string[] | undefined>> = {
  codec: (value: string) => ["--codec", value],
  errors: (value: unknown) => (typeof value === "string" ? ["--errors", value] : undefined),
  omitUnpopulated: whether("--omit-unpopulated"),
  originalNames: whether("--original-names"),
  enumNumbers: whether("--enum-numbers"),
  ignoreUnknown: whether("--ignore-unknown"),
  unbound: whether("--unbound"),
  grpcMetadata: whether("--grpc-metadata"),
  allowHeaders: (names: readonly string[]) => names.flatMap((name) => ["--allow-header", name]),
  limits: (limits: Readonly<Record<string, number>>) => {
    const flags = Object.entries(limits).map(([name, value]) =>
      name === "bodyBytes"
        ? ["--max-bytes", `${value}`]
        : name === "jsonDepth"
          ? ["--json-depth", `${value}`]
          : name === "requestMs"
            ? ["--timeout", `${value}ms`]
            : undefined,
    );
    return flags.includes(undefined) ? undefined : flags.flatMap((flag) => flag ?? []);
  },
};

function whether(flag: string) {
  return (value: boolean) => (value ? [flag] : []);
}

/** Undefined where the command has no flag for one of the options. */
function flagsOf(options: CaseOptions): string[] | undefined {
  const flags = Object.entries(options).map(([name, value]) => FLAGS[name]?.(value as never));
  return flags.includes(undefined) ? undefined : flags.flatMap((flag) => flag ?? []);
}

export const COMMAND: WayKind = {
  name: "through the command",
  takes: (options) => flagsOf(options) !== undefined,
  async open(contract) {
    return before(await grpcServer(contract), (url) => onePerOptions((options) => gatewayAt(url, options)));
  },
};

async function gatewayAt(url: string, options: CaseOptions) {
  const command = await serveWith(["--reflect", url, ...(flagsOf(options) ?? [])]);
  return { port: Number(new URL(command.url).port), close: command.stop };
}
