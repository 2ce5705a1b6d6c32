/**
 * Starts what is in the pods of charts/petstore as Kubernetes would: each on a machine of its own, with its arguments and
 * environment, without capabilities, on a file system that is read-only but for its volumes, where names are those of the
 * Services, and behind its NetworkPolicy. This machine is the node, which reaches all of them.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { type Machine, type Network, setRules } from "../harness/network.ts";
import { environmentOf, image, ofKind, type Peer, type Pod, podsOf, type Rule, rendered, selects } from "./chart.ts";

/** $0 and $1: the file of names, and the folder of data. The rest is the command. */
const CONFINED = `mount --bind "$0" /etc/hosts && mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift &&
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"`;

const NAMESPACE = "kubernetes.io/metadata.name";

interface Place {
  readonly pod: Pod;
  readonly machine: Machine;
}

/** What a test has instead of the rest of a cluster. */
interface Cluster {
  /** Who is in other namespaces. */
  readonly namespaces?: Readonly<Record<string, Machine>>;
  /** Ports that are others than the policies name. */
  readonly ports?: Readonly<Record<number, number>>;
}

/** As nftables has it: the chains of a pod, of which `places` are all. */
function chainsOf({ pod }: Place, places: readonly Place[], values: string, here: string, cluster: Cluster): string {
  const { namespaces = {}, ports: others = {} } = cluster;
  const policies = ofKind(rendered(values), "NetworkPolicy");
  const policy = policies.find(({ spec }) => selects(spec.podSelector.matchLabels, pod.labels));
  const machinesOf = ({ podSelector, namespaceSelector }: Peer): readonly Machine[] => {
    if (namespaceSelector) return [namespaces[namespaceSelector.matchLabels[NAMESPACE] ?? ""] ?? []].flat();
    const selected = (labels: Pod["labels"]) => podSelector && selects(podSelector.matchLabels, labels);
    return places.filter((place) => selected(place.pod.labels)).map(({ machine }) => machine);
  };
  const accepted = (side: string, { from, to = from ?? [], ports }: Rule): string[] => {
    const addresses = to.flatMap(machinesOf).map(({ address }) => address);
    // No list of peers is for everybody.
    if (to.length > 0 && addresses.length === 0) return [];
    const peers = to.length > 0 ? `ip ${side} { ${addresses} }` : "";
    return ports.map(({ protocol, port }) => `${peers} ${protocol.toLowerCase()} dport ${others[port] ?? port} accept`);
  };
  const chain = (hook: string, side: string, rules: readonly Rule[]) => `
  chain ${hook} {
    type filter hook ${hook} priority 0
    ct state established,related accept
    ip ${side} { 127.0.0.1, ${here} } accept
    ${rules.flatMap((rule) => accepted(side, rule)).join("\n    ")}
    reject
  }`;
  return chain("input", "saddr", policy?.spec.ingress) + chain("output", "daddr", policy?.spec.egress);
}

/** Starts the pods of one values file. `secrets`: what is in each file below /secrets. */
export async function startPods(
  values: string,
  { here }: Network,
  machines: readonly Machine[],
  secrets: (pod: string) => Readonly<Record<string, string>>,
  cluster: Cluster = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "chart-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const places = podsOf(rendered(values)).map((pod, i): Place => ({ pod, machine: machines[i] as Machine }));
  const hosts = join(folder, "hosts");
  const names = places.map(({ pod, machine }) => `${machine.address} petstore-${pod.name}`);
  writeFileSync(hosts, ["127.0.0.1 localhost", ...names, ""].join("\n"));
  for (const place of places) await setRules(place.machine, chainsOf(place, places, values, here, cluster));
  return places.map(({ pod, machine }) => {
    const own = join(folder, pod.name);
    const data = join(own, "data");
    mkdirSync(data, { recursive: true });
    for (const [path, content] of Object.entries(secrets(pod.name))) {
      mkdirSync(join(own, dirname(path)), { recursive: true });
      writeFileSync(join(own, path), content);
    }
    const command = [process.execPath, ...image.entrypoint.slice(1), ...pod.container.args];
    const [program = "", ...args] = [...machine.prefix, "unshare", "--mount", "sh", "-c", CONFINED, hosts, data];
    const child = spawn(program, [...args, ...command], {
      env: { PATH: process.env.PATH, ...environmentOf(pod.container, own), DATA_DIR: data },
      stdio: ["ignore", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return { pod, machine, child, log: Promise.all([text(child.stdout), text(child.stderr)]) };
  });
}

export type Started = Awaited<ReturnType<typeof startPods>>[number];
