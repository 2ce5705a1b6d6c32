/** What charts/petstore makes of its values files, as `.ci/chart --write` stores it, and what of that becomes processes. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { gatewayConfig } from "../../gateway/config.ts";
import { serviceConfig } from "../../services/config.ts";

export const CHART = "charts/petstore";

export interface Labels {
  readonly [name: string]: string;
}

export interface Peer {
  readonly podSelector?: { readonly matchLabels: Labels };
  readonly namespaceSelector?: { readonly matchLabels: Labels };
  readonly ipBlock?: object;
}

export interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports: readonly { readonly protocol: string; readonly port: number }[];
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly failureThreshold?: number;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly resources: { readonly requests: Labels; readonly limits: Labels };
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

export interface Volume {
  readonly name: string;
  readonly emptyDir?: object;
  readonly secret?: {
    readonly secretName: string;
    readonly defaultMode: number;
    readonly items?: readonly { readonly key: string; readonly path: string }[];
  };
}

export interface PodSpec {
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number; readonly fsGroup: number };
  readonly terminationGracePeriodSeconds: number;
  readonly topologySpreadConstraints?: readonly object[];
  readonly containers: readonly [Container];
  readonly volumes: readonly Volume[];
}

export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels: Labels };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own, and the tests say what it should be
  readonly spec: any;
}

/** A process, by the name of its kind: that of a service, "gateway", or "single" for all in one. */
export interface Pod {
  readonly name: string;
  readonly labels: Labels;
  readonly spec: PodSpec;
  readonly container: Container;
}

/** The names of the values files to try the chart with. */
export const valuesFiles = globSync(`${CHART}/ci/*.yaml`).map((path) => basename(path, ".yaml"));

export const yamlIn = (path: string) => parse(readFileSync(join(CHART, path), "utf8"));

/** As Kubernetes reads it, by YAML 1.1: 0440 is octal. */
export const rendered = (values: string): readonly Manifest[] =>
  parseAllDocuments(readFileSync(`${CHART}/rendered/${values}.yaml`, "utf8"), { version: "1.1" }).map((document) =>
    document.toJS(),
  );

export const ofKind = (manifests: readonly Manifest[], ...kinds: readonly string[]) =>
  manifests.filter(({ kind }) => kinds.includes(kind));

export const podsOf = (manifests: readonly Manifest[]): readonly Pod[] =>
  ofKind(manifests, "Deployment", "StatefulSet").map(({ spec: { template } }) => ({
    name: template.metadata.labels["app.kubernetes.io/component"],
    labels: template.metadata.labels,
    spec: template.spec,
    container: template.spec.containers[0],
  }));

/** Whether a selector is for what has these labels. */
export const selects = (selector: Labels, labels: Labels): boolean =>
  Object.entries(selector).every(([name, value]) => labels[name] === value);

const dockerfile = readFileSync("Dockerfile", "utf8");
const instruction = (name: string) =>
  new RegExp(`^${name} (.*)$`, "m").exec(dockerfile.slice(dockerfile.lastIndexOf("\nFROM ")))?.[1] ?? "";
const [user, group] = instruction("USER").split(":").map(Number);
/** What a container has of its image. */
export const image = {
  user,
  group,
  entrypoint: JSON.parse(instruction("ENTRYPOINT")) as readonly string[],
  environment: Object.fromEntries(
    instruction("ENV")
      .split(" ")
      .map((pair) => pair.split("=")),
  ) as Readonly<Record<string, string>>,
};

/** The names of all settings that processes read. */
export function declaredSettings(): string[] {
  const environment = { INTERNAL_SECRET: "0".repeat(64) };
  const all = [gatewayConfig(environment, false), serviceConfig(environment, "pet", false)];
  return [...new Set(all.flatMap(({ settings }) => Object.keys(settings)))];
}

/** The environment of a process as its pod gives it, with its secrets in `folder`. */
export const environmentOf = ({ env }: Container, folder: string): Record<string, string> => ({
  ...image.environment,
  ...Object.fromEntries(env.map(({ name, value }) => [name, value.replace(/^\/secrets(?=\/)/, folder)])),
});
