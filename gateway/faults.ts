/**
 * Faults on demand, for those who test what their programs do about failures. They strike between the gateway's endpoints and
 * the services, so each answer is one that the contract knows.
 */
import { readFile } from "node:fs/promises";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { rpcName } from "@petstore/rpc/call";
import type { Runtime } from "@petstore/runtime/clock";
import { ConfigError, duration } from "@petstore/runtime/environment";
import type { Fault } from "@petstore/testing";
import { operationsOf } from "connect-transcoder";
import { type Reason, rpcError } from "#errors";
import type { GatewayConfig } from "./config.ts";
import { httpServices } from "./services.ts";

export type Faults = ReturnType<typeof createFaults>;

/** What any operation may answer. */
const ANYWHERE: readonly string[] = ["UNAVAILABLE", "OVERLOADED", "DEADLINE_EXCEEDED", "INTERNAL"] satisfies Reason[];
/** These leave open what has happened. */
const AFTER: readonly string[] = ["UNAVAILABLE", "DEADLINE_EXCEEDED"] satisfies Reason[];
const ASKED_FOR = "A fault was asked for, and this is it.";
const MAX_FAULTS = 100;
const MAX_COUNT = 1_000_000_000;
const delayFormat = duration("0ms", "60s");

const operations = httpServices.flatMap(operationsOf);

function methodsOf(match: string): readonly DescMethod[] {
  const all = httpServices.flatMap(({ methods }: DescService): readonly DescMethod[] => methods);
  if (match === "*") return all;
  const meant = operations.filter(({ verb, path }) => `${verb} ${path}` === match).map(({ method }) => rpcName(method));
  return all.filter((method) => rpcName(method) === match || meant.includes(rpcName(method)));
}

const isCount = (value: unknown, least: number) =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= MAX_COUNT;
const MEMBERS = ["match", "rate", "times", "delay", "code", "when", "cut"];

/** What is wrong with a fault; undefined if it makes sense. `hasRates`: whether calls may be RATE_LIMITED. */
function problemOf(fault: Fault, hasRates: boolean): string | undefined {
  if (typeof fault !== "object" || fault === null || Array.isArray(fault)) return "it must be an object";
  const { match, rate, times, delay, code, when = "before", cut } = fault;
  const unknown = Object.keys(fault).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) return `${unknown} is not known: there is ${MEMBERS.join(", ")}`;
  const methods = methodsOf(match);
  if (methods.length === 0)
    return `match must be an operation such as "POST /store/orders", an RPC such as "petstore.order.v1.OrderService/CreateOrder", or "*"`;
  if (typeof rate !== "number" || !(rate >= 0 && rate <= 1)) return "rate must be a number from 0 to 1";
  if (times !== undefined && !isCount(times, 1)) return "times must be a whole number, 1 or more";
  if (delay !== undefined && delayFormat.read(delay) === undefined) return `delay must be ${delayFormat.description}`;
  if (when !== "before" && when !== "after") return 'when must be "before" or "after"';
  const isStream = methods.every(({ methodKind }) => methodKind === "server_streaming");
  if (cut !== undefined && !isCount(cut, 0)) return "cut must be a whole number, 0 or more";
  if (cut !== undefined && !(isStream || match === "*")) return "cut is for what streams, such as GET /events";
  if ([delay, code, cut].every((effect) => effect === undefined))
    return "it has no effect: give a delay, a code or a cut";
  if (code === undefined) return when === "after" ? "when has no effect without a code" : undefined;
  if (cut !== undefined) return "code and cut exclude each other: what is cut is UNAVAILABLE";
  const own = operations.filter(({ method }) => methods.includes(method)).map(({ errors }) => errors);
  const known = own.reduce((all, errors) => all.filter((each) => errors.includes(each)), own[0] ?? []);
  const allowed = when === "after" ? AFTER : [...ANYWHERE, ...(hasRates ? ["RATE_LIMITED"] : []), ...known];
  if (when === "after" && isStream) return "when is for what does not stream";
  if (code === "RATE_LIMITED" && !hasRates)
    return "code can be RATE_LIMITED only where there are rates: set RATE_LIMIT";
  return allowed.includes(code) ? undefined : `code must be one of ${allowed.join(", ")}`;
}

/** Throws `ConfigError`, which says which of them is wrong. */
export function readFaults(faults: unknown, hasRates = false): readonly Fault[] {
  if (!Array.isArray(faults)) throw new ConfigError(["The faults must be an array of objects."]);
  if (faults.length > MAX_FAULTS) throw new ConfigError([`There can be ${MAX_FAULTS} faults at most.`]);
  const problems = faults.flatMap((fault, i) => {
    const problem = problemOf(fault, hasRates);
    return problem === undefined ? [] : [`Fault ${i + 1}: ${problem}.`];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return faults;
}

/** Throws `ConfigError`. */
export async function setFaultsFile(faults: Faults, path: string): Promise<void> {
  try {
    faults.set(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    throw new ConfigError([`FAULTS_FILE=${path} can't be used. ${(error as Error).message}`]);
  }
}

export function createFaults(
  { rate, auth }: Partial<Pick<GatewayConfig, "rate" | "auth">>,
  { random, sleep }: Pick<Runtime, "random" | "sleep">,
) {
  // As in the document: only then an answer may be RATE_LIMITED.
  const hasRates = rate !== undefined || auth !== undefined;
  let given: readonly Fault[] = [];
  let current: { readonly fault: Fault; readonly methods: ReadonlySet<string>; left: number }[] = [];
  let draw = random;

  /** Begins anew with the same faults. */
  function restart(next: () => number): void {
    draw = next;
    current = given.map((fault) => ({
      fault,
      methods: new Set(methodsOf(fault.match).map(rpcName)),
      left: fault.times ?? Number.POSITIVE_INFINITY,
    }));
  }
  /** The first that strikes a call. */
  function next(method: DescMethod): Fault | undefined {
    const struck = current.find((one) => one.left > 0 && one.methods.has(rpcName(method)) && draw() < one.fault.rate);
    if (struck) struck.left--;
    return struck?.fault;
  }
  /** Resolves to the time that the call still has. */
  async function wait({ delay = "0ms" }: Fault, signal?: AbortSignal, timeoutMs = Number.POSITIVE_INFINITY) {
    const ms = delayFormat.read(delay) ?? 0;
    await sleep(Math.min(ms, timeoutMs), signal).catch((error) => {
      throw ConnectError.from(error, Code.Canceled);
    });
    if (ms >= timeoutMs) throw rpcError("DEADLINE_EXCEEDED", ASKED_FOR);
    return timeoutMs === Number.POSITIVE_INFINITY ? undefined : timeoutMs - ms;
  }
  const failure = ({ code }: Fault) => rpcError(code as Reason, ASKED_FOR);

  return {
    /** Replaces all. Throws `ConfigError`, and changes nothing then. */
    set(faults: unknown): void {
      given = readFaults(faults, hasRates);
      restart(draw);
    },
    restart,
    strike: ({ unary, stream }: Transport): Transport => ({
      async unary(method, signal, timeoutMs, ...call) {
        const fault = next(method);
        if (!fault) return unary(method, signal, timeoutMs, ...call);
        const left = await wait(fault, signal, timeoutMs);
        if (fault.code !== undefined && fault.when !== "after") throw failure(fault);
        const answer = await unary(method, signal, left, ...call);
        if (fault.code !== undefined) throw failure(fault);
        return answer;
      },
      async stream(method, signal, timeoutMs, ...call) {
        const fault = next(method);
        if (!fault) return stream(method, signal, timeoutMs, ...call);
        const left = await wait(fault, signal, timeoutMs);
        if (fault.code !== undefined) throw failure(fault);
        const answer = await stream(method, signal, left, ...call);
        return fault.cut === undefined ? answer : { ...answer, message: breakAfter(fault.cut, answer.message) };
      },
    }),
  };
}

async function* breakAfter<M>(events: number, messages: AsyncIterable<M>): AsyncGenerator<M> {
  let left = events;
  for await (const message of messages) {
    if (isEvent(message) && left-- === 0) break;
    yield message;
  }
  throw rpcError("UNAVAILABLE", ASKED_FOR);
}

/** A stream also has heartbeats, by which its caller can tell that it is alive. */
function isEvent(message: unknown): boolean {
  const { event, response } = message as Record<"event" | "response", { readonly case?: string } | undefined>;
  return ![undefined, "heartbeat"].includes((event ?? response)?.case);
}
