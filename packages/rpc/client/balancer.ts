/**
 * Chooses the replica of a service for the next call, as gRPC does: "round_robin" among those that are ready. A replica that
 * failed, or does not serve, is in "transient failure": it is skipped until a health check says that it serves, at intervals
 * of gRPC's connection backoff. A replica that accepts calls but answers nothing is detected by health checks, and gets no
 * calls at all.
 */
import type { Runtime } from "@petstore/runtime/clock";
import { InFlight } from "../in-flight.ts";
import type { Replica } from "./replica.ts";

const INITIAL_BACKOFF_MS = 1_000;
const BACKOFF_MULTIPLIER = 1.6;
const BACKOFF_JITTER = 0.2;
/** gRPC's two minutes are too long for services that restart in a second. */
const MAX_BACKOFF_MS = 10_000;

/** A replica that has calls under way and has answered none for this long gets a health check. */
const UNANSWERED_MS = 500;
/** Unanswered health checks after which a replica counts as silent. One may be due to a pause of this process itself. */
const QUESTIONS = 2;

export type Balancer = ReturnType<typeof createBalancer>;

interface Member {
  readonly replica: Replica;
  /** Undefined if the replica is ready. */
  failure?: { backoffMs: number; askAt: number; isSilent: boolean } | undefined;
  /** The `onSilence` of each call under way. */
  readonly calls: InFlight<() => void>;
  /** Since when calls have been under way without any answer. */
  unansweredSince?: number | undefined;
  isWatched: boolean;
  isDoubted: boolean;
}

export function createBalancer(
  replicas: readonly Replica[],
  { clock, random, sleep }: Pick<Runtime, "clock" | "random" | "sleep">,
) {
  /** Also of replicas that were removed, as long as somebody uses them. */
  const known = new WeakMap<Replica, Member>();
  const memberOf = (replica: Replica) => known.get(replica) as Member;
  let members = replicas.map(add);
  let turn = 0;

  function add(replica: Replica): Member {
    const member: Member = { replica, calls: new InFlight(), isWatched: false, isDoubted: false };
    known.set(replica, member);
    return member;
  }

  /** Checks a replica's health. This needs no timer: it happens when the next call could use the replica. */
  async function ask(member: Member, failure: NonNullable<Member["failure"]>): Promise<void> {
    failure.askAt = Number.POSITIVE_INFINITY;
    if (await member.replica.isServing()) {
      if (member.failure === failure) member.failure = undefined;
      return;
    }
    failure.askAt = clock() + failure.backoffMs * (1 + BACKOFF_JITTER * (2 * random() - 1));
    failure.backoffMs = Math.min(failure.backoffMs * BACKOFF_MULTIPLIER, MAX_BACKOFF_MS);
  }

  async function doubt(member: Member): Promise<void> {
    if (member.failure || member.isDoubted) return;
    member.isDoubted = true;
    if (!(await member.replica.isServing())) fail(member);
    member.isDoubted = false;
  }

  function fail(member: Member): void {
    member.failure ??= { backoffMs: INITIAL_BACKOFF_MS, askAt: clock(), isSilent: false };
    member.unansweredSince = undefined;
  }

  /** Gives up the calls of a silent replica. It gets no new ones, so a timer repeats the health check until it answers. */
  async function silence(member: Member): Promise<void> {
    member.unansweredSince = undefined;
    const failure = { backoffMs: INITIAL_BACKOFF_MS, askAt: Number.POSITIVE_INFINITY, isSilent: true };
    member.failure = failure;
    for (const onSilence of member.calls.all()) onSilence();
    do await sleep(UNANSWERED_MS);
    while (members.includes(member) && (await member.replica.isSilent()));
    failure.isSilent = false;
    failure.askAt = clock();
  }

  const noteAnswer = (member: Member) => {
    member.unansweredSince = member.calls.size > 0 ? clock() : undefined;
  };

  async function isSilent({ replica }: Member): Promise<boolean> {
    for (let question = 1; question <= QUESTIONS; question++) if (!(await replica.isSilent())) return false;
    return true;
  }

  /** Runs while calls are under way. A slow call proves nothing if the replica answers other calls, or the health check. */
  async function watch(member: Member): Promise<void> {
    member.isWatched = true;
    for (;;) {
      const since = member.unansweredSince;
      if (since === undefined) break;
      const restMs = since + UNANSWERED_MS - clock();
      if (restMs > 0) await sleep(restMs);
      else if (!(await isSilent(member))) noteAnswer(member);
      else if (member.unansweredSince === since) void silence(member);
    }
    member.isWatched = false;
  }

  const isLeft = ({ replica, failure }: Member, tried: ReadonlySet<Replica>): boolean =>
    !tried.has(replica) && !failure?.isSilent;

  return {
    /** Whether `next` would give one. */
    hasOther: (tried: ReadonlySet<Replica>): boolean => members.some((member) => isLeft(member, tried)),
    /** Changes which these are. One that joins is skipped until it says that it serves, as one that was started again. */
    set(replicas: readonly Replica[]): void {
      members = replicas.map((replica) => {
        const member = known.get(replica) ?? add(replica);
        if (!members.includes(member)) fail(member);
        return member;
      });
    },
    /** Whether calls to a replica, other than streams that have begun, are under way. */
    isBusy(replica: Replica): boolean {
      const { calls, isWatched } = memberOf(replica);
      return calls.size > 0 || isWatched;
    },
    /**
     * The next replica in turn that was not tried. A replica that is not ready is chosen only if there is no other, and a
     * silent one never; undefined if none is left.
     */
    next(tried: ReadonlySet<Replica> = new Set()): Replica | undefined {
      for (const member of members)
        if (member.failure && clock() >= member.failure.askAt) void ask(member, member.failure);
      const inTurn = members.map((_, i) => members[(turn + i) % members.length] as Member);
      const untried = inTurn.filter((member) => isLeft(member, tried));
      const chosen = untried.find(({ failure }) => !failure) ?? untried[0];
      if (chosen) turn = members.indexOf(chosen) + 1;
      return chosen?.replica;
    },
    /** A call to a replica failed in transit: skips the replica until it says that it serves. */
    failed: (replica: Replica) => fail(memberOf(replica)),
    /** A replica answered UNAVAILABLE, which may be about another service: skips it if its health says that it does not serve. */
    doubted: (replica: Replica) => void doubt(memberOf(replica)),
    /**
     * A call to a replica begins. `onSilence` is called if the replica turns out to be silent before the call has ended. Returns
     * a function to call then; `answered` if the replica ended it.
     */
    begin(replica: Replica, onSilence: () => void): (answered: boolean) => void {
      const member = memberOf(replica);
      const number = member.calls.add(onSilence);
      member.unansweredSince ??= clock();
      if (!member.isWatched) void watch(member);
      return (answered) => {
        member.calls.take(number);
        if (answered) noteAnswer(member);
      };
    },
  };
}
