/**
 * Machines for tests that cut the network: each is a Linux network namespace with an address of its own, on one bridge with
 * this machine. However the test process ends, the namespaces end too: a shell that waits for the end of its input removes
 * them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { networkInterfaces } from "node:os";
import { findProgram } from "./programs.ts";

/** For `test.skipIf(...)`: the reporter mentions it, and with CI=true the run fails before it starts. */
export const networkMissing = process.getuid?.() !== 0 || !["ip", "nft"].every((name) => findProgram(name));

export interface Machine {
  readonly address: string;
  /** The prefix of commands that run there. */
  readonly prefix: readonly string[];
}

export interface Network extends AsyncDisposable {
  readonly machines: readonly Machine[];
  /** Drops all packets between the machine and these addresses, in both directions. */
  cut(machine: Machine, addresses: readonly string[]): Promise<void>;
  /** Removes all cuts of a machine. */
  heal(machine: Machine): Promise<void>;
  /** The address of this machine, as seen by the others. */
  readonly here: string;
}

/** $0 is the name of the network, $1 the first three numbers of its addresses, the rest are names of machines. */
const KEEPER = `
trap '' INT TERM HUP
net=$0; part=$1; shift
build() {
  ip link add "$net" type bridge && ip addr add "$part.1/24" dev "$net" && ip link set "$net" up || return
  n=10
  for machine; do
    n=$((n + 1))
    ip netns add "$machine" &&
    ip link add "$machine" type veth peer name eth0 netns "$machine" &&
    ip link set "$machine" master "$net" up &&
    ip -n "$machine" addr add "$part.$n/24" dev eth0 &&
    ip -n "$machine" link set eth0 up &&
    ip -n "$machine" link set lo up || return
  done
}
build "$@" && { echo up; read -r end; }
for machine; do ip link del "$machine"; ip netns del "$machine"; done
ip link del "$net"`;

/** Creates `count` machines. Needs root, `ip` and `nft`. */
export async function startNetwork(count: number): Promise<Network> {
  const name = `ps${process.pid.toString(36)}${Math.floor(Math.random() * 36 ** 3).toString(36)}`;
  const part = freePart();
  const names = Array.from({ length: count }, (_, i) => `${name}-${i}`);
  const keeper = spawn("sh", ["-c", KEEPER, name, part, ...names], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(keeper, "exit");
  await Promise.race([once(keeper.stdout, "data"), ended]);
  if (keeper.exitCode !== null) throw new Error("The network could not be made.");
  const machines = names.map((machine, i) => ({
    address: `${part}.${11 + i}`,
    prefix: ["ip", "netns", "exec", machine],
  }));
  const heal = (machine: Machine) => setRules(machine, "");
  return {
    machines,
    here: `${part}.1`,
    heal,
    cut: (machine, addresses) => setRules(machine, dropping(addresses)),
    async [Symbol.asyncDispose]() {
      keeper.stdin.end();
      await ended;
    },
  };
}

const dropping = (addresses: readonly string[]) => `
  chain in {
    type filter hook input priority 0
    ip saddr { ${addresses.join(", ")} } drop
  }
  chain out {
    type filter hook output priority 0
    ip daddr { ${addresses.join(", ")} } drop
  }`;

/** Replaces the rules of the machine atomically, by the chains of nftables. */
export const setRules = ({ prefix }: Machine, chains: string) =>
  run([...prefix, "nft", "-f", "-"], `table inet cut\ndelete table inet cut\ntable inet cut {${chains}\n}\n`);

async function run([program = "", ...args]: readonly string[], input: string): Promise<void> {
  const child = spawn(program, args, { stdio: ["pipe", "inherit", "inherit"] });
  child.stdin.end(input);
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}:\n${input}`);
}

/** An unused part of the addresses that are reserved for tests of networks (RFC 2544). */
function freePart(): string {
  const taken = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
  for (;;) {
    const part = `198.${18 + Math.floor(Math.random() * 2)}.${Math.floor(Math.random() * 256)}`;
    if (!taken.some((address) => address.startsWith(`${part}.`))) return part;
  }
}
