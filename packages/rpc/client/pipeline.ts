/**
 * A client's path to a service: the layers of `layers.ts`, then load balancing over the replicas, and to each replica one
 * connection with one link, on which calls of one tick are sent together.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { deadlineAfter } from "../call.ts";
import type { ErrorCatalogue } from "../errors.ts";
import { limitCalls } from "../link/client.ts";
import type { Balancer } from "./balancer.ts";
import { isReplayable, isUnknownRpc, neverRan, notMade, translating, wayBroke } from "./failed-call.ts";
import { type PipelineDeps, pipeline } from "./layers.ts";
import { openReplica, type Replica, type ReplicaOptions } from "./replica.ts";
import { type Lookup, openReplicas } from "./replicas.ts";

export interface ServiceTransportOptions
  extends PipelineDeps,
    Pick<ReplicaOptions, "secret" | "certificates" | "link" | "log" | "tracing"> {
  /** Where all replicas of the service are, such as "http://127.0.0.1:8081"; at least one. A host name may stand for several. */
  readonly urls: readonly string[];
  readonly lookup?: Lookup | undefined;
}

export type ServiceTransport = ReturnType<typeof createServiceTransport>;

/** A transport to one service. It connects when it is first used. */
export function createServiceTransport({
  urls,
  lookup,
  secret,
  certificates,
  link,
  log,
  tracing,
  ...deps
}: ServiceTransportOptions) {
  const limit = limitCalls(deps.errors);
  const links = { hadNone: false };
  const options = { secret, certificates, limit, link, links, log, tracing, clock: deps.clock };
  const open = (url: string, address?: string) => openReplica(url, { ...options, address });
  const { balancer, ...all } = openReplicas({ urls, open, lookup, log, ...deps });
  return { ...pipeline(withLoadBalancing(balancer, { ...deps, lookAgain: all.lookAgain }), deps), ...all };
}

interface LoadBalancingDeps extends Pick<PipelineDeps, "clock" | "errors"> {
  /** Looks for replicas that have joined, within so many milliseconds. */
  readonly lookAgain?: ((ms: number) => Promise<void>) | undefined;
}

/**
 * Unary calls of one tick go to the same replica, a stream to the next one. A call that certainly never ran, or whose RPC
 * its replica does not know, is sent to the next replica, and so is a repeatable call if its replica turns out to be silent
 * before it answers or begins the stream.
 */
export function withLoadBalancing(balancer: Balancer, { clock, errors, lookAgain }: LoadBalancingDeps): Transport {
  const { reasonOf } = errors;
  let current: Replica | undefined;
  const ofThisTick = (): Replica | undefined => {
    if (current) return current;
    setImmediate(() => {
      current = undefined;
    });
    current = balancer.next();
    return current;
  };
  /** An error from the replica itself proves that it is there; the caller's deadline or abort proves nothing. */
  const provesPresence = (error: ConnectError, signal: AbortSignal | undefined): boolean =>
    !signal?.aborted && !wayBroke(error, errors, signal) && !(error.code === Code.DeadlineExceeded && !reasonOf(error));
  const doubt = (replica: Replica, error: ConnectError): void => {
    if (reasonOf(error)?.reason === "UNAVAILABLE") balancer.doubted(replica);
  };
  /** If all are silent, others may have taken their place. */
  const afterLook = async (next: () => Replica | undefined, ms: number): Promise<Replica | undefined> => {
    await lookAgain?.(ms);
    return next();
  };
  /** Whether a replica is left. If all were tried in vain, others may have taken their place. */
  const isLeft = async (tried: ReadonlySet<Replica>, ms: number): Promise<boolean> => {
    if (!balancer.hasOther(tried)) await lookAgain?.(ms);
    return balancer.hasOther(tried);
  };
  return {
    async stream(method, signal, timeoutMs, headers, input, contextValues) {
      const deadline = deadlineAfter(clock, timeoutMs);
      const messages = method.methodKind === "server_streaming" ? await Array.fromAsync(input) : undefined;
      const tried = new Set<Replica>();
      for (;;) {
        const next = () => balancer.next(tried);
        const replica = next() ?? (await afterLook(next, deadline.remaining()));
        if (!replica) throw unavailable(errors, method, ALL_SILENT);
        tried.add(replica);
        const isLost = (error: ConnectError) => wayBroke(error, errors, signal);
        const noted = (thrown: unknown): ConnectError => {
          const error = ConnectError.from(thrown);
          if (isLost(error)) balancer.failed(replica);
          else doubt(replica, error);
          return error;
        };
        const silence = new AbortController();
        const end = balancer.begin(replica, () => {
          if (messages && isReplayable(method, messages)) silence.abort();
        });
        try {
          const given = messages ? createAsyncIterable(messages) : input;
          const until = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
          const limit = deadline.timeoutMs();
          const answer = await replica.transport.stream(method, until, limit, headers, given, contextValues);
          end(true);
          return { ...answer, message: translating(answer.message, noted) };
        } catch (thrown) {
          const isSilent = silence.signal.aborted;
          const error = isSilent ? silent(replica) : noted(thrown);
          end(provesPresence(error, signal));
          const isElsewhere = isUnknownRpc(error, errors);
          const mayGoOn = messages && (isElsewhere || (isLost(error) && (isSilent || neverRan(error))));
          if (!mayGoOn || !(await isLeft(tried, deadline.remaining())))
            throw isElsewhere ? unavailable(errors, method, NOWHERE) : error;
        }
      }
    },
    async unary(method, signal, timeoutMs, headers, input, contextValues) {
      const deadline = deadlineAfter(clock, timeoutMs);
      const tried: Replica[] = [];
      /** Of a replica that may have run the call. */
      let inDoubt: ConnectError | undefined;
      for (;;) {
        const next = () => (tried.length === 0 ? ofThisTick() : balancer.next(new Set(tried)));
        const replica = next() ?? (await afterLook(next, deadline.remaining()));
        if (!replica) throw inDoubt ?? unavailable(errors, method, ALL_SILENT);
        tried.push(replica);
        let silence = (_: ConnectError) => {};
        let isSilent: ConnectError | undefined;
        const end = balancer.begin(replica, () => {
          if (!isReplayable(method, input)) return;
          isSilent = silent(replica);
          silence(isSilent);
        });
        try {
          const limit = deadline.timeoutMs();
          const attempt = replica.transport.unary(method, signal, limit, headers, input, contextValues);
          // A race of two promises would cost as much as the rest of this function.
          const answer = await new Promise<Awaited<typeof attempt>>((resolve, reject) => {
            silence = reject;
            attempt.then(resolve, reject);
          });
          end(true);
          return answer;
        } catch (thrown) {
          const error = ConnectError.from(thrown);
          const isLost = wayBroke(error, errors, signal);
          const isElsewhere = isUnknownRpc(error, errors);
          end(provesPresence(error, signal));
          if (!isLost && !isElsewhere) {
            doubt(replica, error);
            throw error;
          }
          if (error === isSilent) inDoubt = error;
          else if (isLost) balancer.failed(replica);
          const mayGoOn = isElsewhere || error === isSilent || neverRan(error);
          if (!mayGoOn || !(await isLeft(new Set(tried), deadline.remaining())))
            throw inDoubt ?? (isElsewhere ? unavailable(errors, method, NOWHERE) : error);
        }
      }
    },
  };
}

const silent = ({ url, address }: Replica): ConnectError =>
  new ConnectError(`${url}${address ? ` at ${address}` : ""} is silent`, Code.Unavailable);

const unavailable = (errors: ErrorCatalogue, { parent }: DescMethod, why: string): ConnectError =>
  notMade(errors, "UNAVAILABLE", `${parent.name} ${why} Try again in a second.`);
const ALL_SILENT = "does not answer now.";
/** No 404: the caller's own version has the RPC, and so has the service once it is found again, or all of it is replaced. */
const NOWHERE = "does not know this call now. Nothing was done.";
