/**
 * Sharing calls among the replicas of a service, in the way and in the words of gRPC: "round_robin" among those that are
 * ready; one that failed is in "transient failure" and passed over until it says that it serves, asked at intervals of
 * gRPC's connection backoff.
 */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type { Deps } from "../deps.ts";
import { reasonOf } from "./fault.ts";
import { isBroken } from "./lost-reply.ts";
import { neverRan, type Replica } from "./replica.ts";

const INITIAL_BACKOFF_MS = 1_000;
const BACKOFF_MULTIPLIER = 1.6;
const BACKOFF_JITTER = 0.2;
/** gRPC's two minutes are too long for services that restart in a second. */
const MAX_BACKOFF_MS = 10_000;

export interface Balancer {
  /** The replica whose turn it is; one that is not ready, or is among the `tried`, only if there is no other. */
  next(tried?: ReadonlySet<Replica>): Replica;
  /** It did not answer: passes it over until it says that it serves. */
  failed(replica: Replica): void;
}

interface Member {
  readonly replica: Replica;
  /** Undefined when it is ready. */
  failure: { backoffMs: number; askAt: number } | undefined;
}

export function createBalancer(
  replicas: readonly Replica[],
  { clock, random }: Pick<Deps, "clock" | "random">,
): Balancer {
  const members: Member[] = replicas.map((replica) => ({ replica, failure: undefined }));
  let turn = 0;

  /** Without a timer: a replica is asked when somebody could use it. */
  async function ask(member: Member, failure: NonNullable<Member["failure"]>): Promise<void> {
    failure.askAt = Number.POSITIVE_INFINITY;
    if (await member.replica.isServing()) {
      if (member.failure === failure) member.failure = undefined;
      return;
    }
    failure.askAt = clock() + failure.backoffMs * (1 + BACKOFF_JITTER * (2 * random() - 1));
    failure.backoffMs = Math.min(failure.backoffMs * BACKOFF_MULTIPLIER, MAX_BACKOFF_MS);
  }

  return {
    next(tried = new Set()) {
      for (const member of members)
        if (member.failure && clock() >= member.failure.askAt) void ask(member, member.failure);
      const inTurn = members.map((_, i) => members[(turn + i) % members.length] as Member);
      const untried = inTurn.filter(({ replica }) => !tried.has(replica));
      const [chosen = inTurn[0]] = [...untried.filter(({ failure }) => !failure), ...untried];
      turn = members.indexOf(chosen as Member) + 1;
      return (chosen as Member).replica;
    },
    failed(replica) {
      const member = members.find((one) => one.replica === replica);
      if (member) member.failure ??= { backoffMs: INITIAL_BACKOFF_MS, askAt: clock() };
    },
  };
}

/** Calls of one turn of the event loop go to the same replica, and a call that surely never ran goes to the next one. */
export function balancing(balancer: Balancer, replicas: number, { clock }: Pick<Deps, "clock">): Transport {
  let current: Replica | undefined;
  const ofThisTurn = (): Replica => {
    if (current) return current;
    setImmediate(() => {
      current = undefined;
    });
    current = balancer.next();
    return current;
  };
  return {
    stream: (...call) => balancer.next().transport.stream(...call),
    async unary(method, signal, timeoutMs, headers, input, contextValues) {
      const deadline = timeoutMs === undefined ? undefined : clock() + timeoutMs;
      const tried = new Set<Replica>();
      for (;;) {
        const replica = tried.size === 0 ? ofThisTurn() : balancer.next(tried);
        tried.add(replica);
        try {
          const left = deadline === undefined ? undefined : Math.max(1, deadline - clock());
          return await replica.transport.unary(method, signal, left, headers, input, contextValues);
        } catch (thrown) {
          const error = ConnectError.from(thrown);
          // What a replica said itself does not speak against it, and neither does a caller that gave up.
          if (signal?.aborted || reasonOf(error) || !isSilence(error)) throw error;
          balancer.failed(replica);
          if (!neverRan(error) || tried.size === replicas) throw error;
        }
      }
    },
  };
}

/** True for the codes of a call that nobody answered. */
export const isSilence = (error: ConnectError): boolean => error.code === Code.DeadlineExceeded || isBroken(error);
