/** Compares who finds and may reach whom in charts/petstore with who calls whom in the code. */
import type { Transport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { publicServices } from "../../gateway/services.ts";
import { isServiceName, type ServiceName, serviceNames } from "../../processes/names.ts";
import { openPeers } from "../../services/create.ts";
import {
  type Manifest,
  ofKind,
  type Peer,
  type Pod,
  podsOf,
  type Rule,
  rendered,
  selects,
  valuesFiles,
  yamlIn,
} from "./chart.ts";

/** Whom each process calls. */
const calls = new Map<string, readonly ServiceName[]>([
  ["gateway", publicServices.map(({ name }) => name)],
  ...serviceNames.map((name): [string, readonly ServiceName[]] => {
    const called: ServiceName[] = [];
    openPeers(name, (peer) => {
      called.push(peer);
      return {} as Transport;
    });
    return [name, called];
  }),
]);
const calledBy = (name: string): readonly ServiceName[] => calls.get(name) ?? [];

const defaults = yamlIn("values.yaml");
const tcp = (port: number) => [{ protocol: "TCP", port }];
const at = (rules: readonly Rule[], port: number) =>
  rules.filter(({ ports }) => ports.some((one) => one.port === port));

test("the calls are found", () => expect(calledBy("category")).toEqual(["pet"]));

describe.each(valuesFiles)("%s", (file) => {
  const manifests = rendered(file);
  const { singleProcess = false, tls, networkPolicy = {}, monitoring } = yamlIn(`ci/${file}.yaml`);
  const pods = podsOf(manifests);
  const podsWith = (selector: Pod["labels"]) =>
    pods.filter(({ labels }) => selects(selector, labels)).map(({ name }) => name);
  const serviceOf = (name: string): Manifest["spec"] =>
    ofKind(manifests, "Service").find(({ metadata }) => metadata.name === `petstore-${name}`)?.spec;
  const policies = ofKind(manifests, "NetworkPolicy");
  const policyOf = ({ name, labels }: Pod): { readonly ingress: readonly Rule[]; readonly egress: readonly Rule[] } => {
    const [policy, ...more] = policies.filter(({ spec }) => selects(spec.podSelector.matchLabels, labels));
    expect([name, policy?.spec.policyTypes, more]).toEqual([name, ["Ingress", "Egress"], []]);
    return policy?.spec;
  };
  const podsAmong = (peers: readonly Peer[] = []) =>
    peers.flatMap(({ podSelector, namespaceSelector }) =>
      podSelector && !namespaceSelector ? podsWith(podSelector.matchLabels) : [],
    );

  test.each(pods)("$name reaches those that it calls, and is reached by those that call it", (pod) => {
    const { ingress, egress } = policyOf(pod);
    const callers = pods.filter(({ name }) => calledBy(name).includes(pod.name as ServiceName));
    const from = at(ingress, 8080).flatMap((rule) => podsAmong(rule.from));
    const to = at(egress, 8080).flatMap((rule) => podsAmong(rule.to));
    expect([from.sort(), to.sort()]).toEqual([callers.map(({ name }) => name).sort(), [...calledBy(pod.name)].sort()]);
  });

  test.each(pods)(
    "$name has no other way in, and out of it only to its database, to names, and where values say",
    (pod) => {
      const { ingress, egress } = policyOf(pod);
      const isService = isServiceName(pod.name);
      expect(ingress).toEqual([
        { from: isService ? expect.any(Array) : (networkPolicy.callers ?? []), ports: tcp(8080) },
        ...(monitoring?.serviceMonitor ? [{ from: defaults.monitoring.prometheus, ports: tcp(8180) }] : []),
      ]);
      // From nobody would mean from everybody.
      if (isService) expect(ingress[0]?.from?.every((peer) => podsAmong([peer]).length === 1)).toBe(true);
      if (isService) expect(ingress[0]?.from).not.toEqual([]);
      expect(egress).toEqual([
        ...(calls.has(pod.name) ? [{ to: calledBy(pod.name).map(() => expect.any(Object)), ports: tcp(8080) }] : []),
        ...(isService ? [{ to: networkPolicy.mongodb ?? [], ports: tcp(27017) }] : []),
        { to: defaults.networkPolicy.dns, ports: [{ protocol: "UDP", port: 53 }, ...tcp(53)] },
        ...(networkPolicy.egress ?? []),
      ]);
    },
  );

  test("no policy is for nobody", () => expect(policies).toHaveLength(pods.length));

  test.each(pods)("$name finds those that it calls, at names that have the addresses of all that are ready", (pod) => {
    const addresses = new Map(pod.container.env.map(({ name, value }) => [name, value]));
    const known = serviceNames.filter((name) => addresses.has(`${name.toUpperCase()}_URL`));
    expect(new Set(known)).toEqual(new Set(calledBy(pod.name)));
    for (const called of known) {
      expect(addresses.get(`${called.toUpperCase()}_URL`)).toBe(`${tls ? "https" : "http"}://petstore-${called}:8080`);
      const service = serviceOf(called);
      expect(service).toMatchObject({ clusterIP: "None", ports: [{ port: 8080, targetPort: "http" }] });
      expect(service).not.toHaveProperty("publishNotReadyAddresses");
      expect(podsWith(service.selector)).toEqual([called]);
    }
  });

  test("callers reach the gateway, and no admin port", () => {
    const { type, selector, ports, externalTrafficPolicy } = serviceOf("gateway");
    expect(podsWith(selector)).toEqual([singleProcess ? "single" : "gateway"]);
    expect(ports).toEqual([{ name: "http", port: tls ? 443 : 80, targetPort: "http" }]);
    expect(externalTrafficPolicy).toBe(type === "LoadBalancer" ? "Local" : undefined);
    const others = ofKind(manifests, "Service").filter(({ metadata }) => metadata.name !== "petstore-gateway");
    for (const { spec } of others) expect([spec.clusterIP, spec.type]).toEqual(["None", undefined]);
  });
});
