/**
 * The replicas of a service. An address is one, and so is each of the addresses that a host name stands for, such as that of
 * a headless service of Kubernetes. Names are looked up again and again: what has come joins, what has gone is left when its
 * calls have ended.
 */
import { ADDRCONFIG } from "node:dns";
import { lookup as lookUp } from "node:dns/promises";
import { isIP } from "node:net";
import type { Runtime } from "@petstore/runtime/clock";
import { hostOfUrl } from "../http/address.ts";
import { createBalancer } from "./balancer.ts";
import type { Replica, ReplicaOptions } from "./replica.ts";

const LOOK_EVERY_MS = 5_000;
/** For calls that find no replica names are looked up before that, but no sooner than this after the last time. */
const LOOK_AGAIN_MS = 100;
/** How long such a call waits at most. */
const PATIENCE_MS = 1_000;
/** How often it is checked whether the calls of a replica that was removed have ended. Longer than a probe of `/readyz`. */
const DRAIN_MS = 1_000;
/** gRPC's MAX_CONNECTION_AGE: behind an address may be a load balancer, which gives each new connection to one of many. */
const MAX_AGE_MS = 10 * 60_000;
/** Connections of the same age must not end at the same time. */
const AGE_JITTER = 0.2;
/** Connections to one address, with those that still have streams: a service counts them, and a stream may stay for days. */
const MOST = 4;

/** Finds all addresses of a host. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/**
 * The system's own way, because only that knows /etc/hosts and the search domains of resolv.conf, by which pods and containers
 * find each other. It does not tell how long an answer is valid.
 */
const systemLookup: Lookup = async (host) =>
  (await lookUp(host, { all: true, hints: ADDRCONFIG })).map(({ address }) => address);

interface ReplicasOptions extends Pick<Runtime, "clock" | "random" | "sleep">, Pick<ReplicaOptions, "log"> {
  readonly urls: readonly string[];
  readonly open: (url: string, address?: string) => Replica;
  readonly lookup?: Lookup | undefined;
}

export function openReplicas({ urls, open, lookup = systemLookup, log, ...deps }: ReplicasOptions) {
  const { clock, random, sleep } = deps;
  const closing = new AbortController();
  /** Also those that were removed and still have calls. With the time from which each has a successor. */
  const opened = new Map<Replica, number>();
  const places = urls.map((url) => {
    const host = hostOfUrl(new URL(url));
    const replica = add(url);
    return host === "localhost" || isIP(host) ? { replicas: () => [replica] } : follow(url, host, replica);
  });
  const names = places.filter((place) => "look" in place);
  const all = () => places.flatMap(({ replicas }) => replicas());
  const balancer = createBalancer(all(), deps);
  for (const { look } of names) untilClosed(repeat(look));

  function add(url: string, address?: string): Replica {
    const replica = open(url, address);
    opened.set(replica, clock() + MAX_AGE_MS * (1 + AGE_JITTER * (2 * random() - 1)));
    return replica;
  }

  function close(replica: Replica): void {
    opened.delete(replica);
    replica.close();
  }

  async function repeat(look: () => Promise<void>): Promise<void> {
    for (;;) {
      await look();
      await sleep(LOOK_EVERY_MS, closing.signal);
    }
  }

  async function drain(replica: Replica): Promise<void> {
    do {
      await sleep(DRAIN_MS, closing.signal);
      if (!balancer.isBusy(replica)) replica.endCalls();
    } while (balancer.isBusy(replica) || replica.streams() > 0);
    close(replica);
  }

  /** Until the name was looked up there is only the replica `byName`, for which Node does that at each connection. */
  function follow(url: string, host: string, byName: Replica) {
    /** By address. */
    let known = new Map([["", byName]]);
    let looking: Promise<void> | undefined;
    let soon: Promise<void> | undefined;
    let lookedAt = Number.NEGATIVE_INFINITY;
    let isFailing = false;

    /** How many connections to an address there are, as far as streams keep those that have a successor. */
    const count = (address: string) =>
      [...opened.keys()].filter((replica) => replica.url === url && replica.address === address).length;

    /** The replica at an address: a new one if there was none, or if that is too old and the new one serves. */
    async function replicaAt(address: string): Promise<Replica> {
      const old = known.get(address);
      if (old && (clock() < (opened.get(old) ?? 0) || count(address) >= MOST)) return old;
      const fresh = add(url, address);
      if (!old || (await fresh.isServing())) return fresh;
      close(fresh);
      return old;
    }

    async function take(addresses: readonly string[]): Promise<void> {
      if (closing.signal.aborted) return;
      isFailing = false;
      const before = known;
      const distinct = [...new Set(addresses.toSorted())];
      const now = new Map(await Promise.all(distinct.map(async (at) => [at, await replicaAt(at)] as const)));
      known = now;
      balancer.set(all());
      const kept = new Set(now.values());
      for (const replica of before.values()) if (!kept.has(replica)) untilClosed(drain(replica));
      if (`${[...now.keys()]}` !== `${[...before.keys()]}`)
        log?.info({ host, addresses: [...now.keys()] }, "a service's addresses have changed");
    }

    function keep({ message }: Error): void {
      if (closing.signal.aborted) return;
      if (!isFailing)
        log?.warn({ host, problem: message }, "a service's name can't be looked up: what it was stays in use");
      isFailing = true;
    }

    const look = () => {
      looking ??= lookup(host)
        .then(take)
        .catch(keep)
        .finally(() => {
          looking = undefined;
          lookedAt = clock();
        });
      return looking;
    };
    const again = () => {
      soon ??= sleep(Math.max(0, lookedAt + LOOK_AGAIN_MS - clock()), closing.signal)
        .then(look)
        .catch(() => {}) // everything is closed
        .finally(() => {
          soon = undefined;
        });
      return soon;
    };
    return { replicas: () => [...known.values()], look, again };
  }

  return {
    balancer,
    /** In the order of their addresses. */
    replicas: (): readonly Replica[] => all(),
    async lookAgain(ms: number): Promise<void> {
      if (names.length === 0) return;
      const looked = Promise.all(names.map(({ again }) => again()));
      const over = new AbortController();
      const ended = AbortSignal.any([over.signal, closing.signal]);
      const patience = sleep(Math.max(0, Math.min(ms, PATIENCE_MS)), ended).catch(() => {});
      await Promise.race([looked, patience]).finally(() => over.abort());
    },
    close(): void {
      closing.abort();
      for (const replica of opened.keys()) close(replica);
    },
  };
}

/** For work that ends, by a rejection, when everything is closed. */
const untilClosed = (work: Promise<void>): void => void work.catch(() => {});
