/** Holds the pods of charts/petstore, as they are rendered, to what they promise and to the code that they start. */
import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { STOP_LIMIT_MS } from "@petstore/runtime/lifecycle";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gatewayConfig } from "../../gateway/config.ts";
import { launcherConfig, launcherWarnings } from "../../launcher/config.ts";
import { isServiceName, processNames } from "../../processes/names.ts";
import { serviceConfig } from "../../services/config.ts";
import {
  CHART,
  declaredSettings,
  environmentOf,
  image,
  type Manifest,
  ofKind,
  type Pod,
  podsOf,
  rendered,
  selects,
  valuesFiles,
  yamlIn,
} from "./chart.ts";

const secrets = mkdtempSync(join(tmpdir(), "chart-"));
afterAll(() => rmSync(secrets, { recursive: true }));
beforeAll(() => {
  const files = { "internal/secret": "0".repeat(64), "mongodb/uri": "mongodb://db.example/?replicaSet=petstore" };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(secrets, dirname(path)));
    writeFileSync(join(secrets, path), text);
  }
});

test("what is rendered is of this chart: after a change, .ci/helm and .ci/chart --write make it anew", () => {
  const sources = globSync(`${CHART}/{templates,ci}/*`).concat(`${CHART}/Chart.yaml`, `${CHART}/values.yaml`).sort();
  const hash = createHash("sha256");
  for (const path of sources) hash.update(readFileSync(path));
  expect(readFileSync(`${CHART}/rendered/sources.sha256`, "utf8").trim()).toBe(hash.digest("hex"));
  expect(globSync(`${CHART}/rendered/*.yaml`)).toHaveLength(valuesFiles.length);
  expect(valuesFiles).toEqual(expect.arrayContaining(["five", "single", "production"]));
});

test("the chart has the version of the petstore", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  expect(yamlIn("Chart.yaml")).toMatchObject({ version, appVersion: version });
});

/** What the process makes of its environment. */
function configOf({ name, container }: Pod) {
  const environment = environmentOf(container, secrets);
  if (isServiceName(name)) return serviceConfig(environment, name, false);
  if (name === "gateway") return gatewayConfig(environment, false);
  return gatewayConfig(launcherConfig(environment, false, { ports: processNames.length }).environment, false);
}

describe.each(valuesFiles)("%s", (file) => {
  const manifests = rendered(file);
  const values = yamlIn(`ci/${file}.yaml`);
  const pods = podsOf(manifests);
  const isFive = !values.singleProcess;

  test("there is a pod for each process, or one for all", () => {
    expect(pods.map(({ name }) => name).sort()).toEqual(isFive ? [...processNames].sort() : ["single"]);
    for (const { spec } of ofKind(manifests, "Deployment", "StatefulSet")) {
      expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels);
      expect(spec.template.spec.containers).toHaveLength(1);
    }
  });

  test.each(pods)("$name may do what Pod Security calls restricted, and has no token", ({ spec, container }) => {
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: image.user,
        runAsGroup: image.group,
        fsGroup: image.group,
        seccompProfile: { type: "RuntimeDefault" },
      },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    for (const field of ["hostNetwork", "hostPID", "hostIPC", "initContainers"]) expect(spec).not.toHaveProperty(field);
    for (const { name: _, ...source } of spec.volumes) expect(Object.keys(source)[0]).toMatch(/^(emptyDir|secret)$/);
    const { requests, limits } = container.resources;
    expect([Object.keys(requests), Object.keys(limits)]).toEqual([
      ["cpu", "ephemeral-storage", "memory"],
      ["ephemeral-storage", "memory"],
    ]);
  });

  test.each(pods)("$name runs what it is called, and takes its whole environment", (pod) => {
    const { name, container } = pod;
    const known = new Set(declaredSettings());
    const own = container.env.map((variable) => variable.name.replace(/^(INTERNAL_SECRET|MONGODB_URI)_FILE$/, "$1"));
    expect(own.filter((variable) => !known.has(variable))).toEqual([]);
    expect(new Set(own).size).toBe(own.length);
    if (name === "single") {
      expect(container.args).toEqual(["launcher/main.ts", "--single-process"]);
      // The image sets it for the processes that run alone.
      expect(launcherWarnings(environmentOf(container, secrets)).map((warning) => warning.name)).toEqual(["PORT"]);
    } else expect(container.args).toEqual(name === "gateway" ? ["gateway/main.ts"] : ["services/main.ts", name]);
    const config = configOf(pod);
    expect(config).toMatchObject({ host: "0.0.0.0", admin: { host: "0.0.0.0" }, loopbackOnly: false });
    expect(config.auth !== undefined).toBe(values.auth !== "none");
    expect(config.tls !== undefined).toBe(values.tls !== undefined);
    expect(config.internalTls !== undefined).toBe(isFive && values.tls !== undefined);
    expect(container.ports).toEqual([
      { name: "http", containerPort: config.port },
      { name: "admin", containerPort: config.admin?.port },
    ]);
    const names = ["", ".petstore", ".petstore.svc", ".petstore.svc.cluster.local"].map(
      (rest) => `petstore-gateway${rest}`,
    );
    expect(config.allowedHosts).toEqual(isServiceName(name) ? undefined : [...names, ...(values.allowedHosts ?? [])]);
  });

  test.each(pods)("$name has the files that it reads, and no others", ({ name, spec, container }) => {
    const read = container.env.flatMap(({ value }) => /^\/secrets\/(\w+)\//.exec(value)?.[1] ?? []);
    const mounted = container.volumeMounts.filter(({ mountPath }) => mountPath.startsWith("/secrets/"));
    expect(new Set(mounted.map((mount) => mount.name))).toEqual(new Set(read));
    const secretOf = (volume: string) => spec.volumes.find((each) => each.name === volume)?.secret;
    for (const { name: volume, mountPath, readOnly } of mounted) {
      expect([mountPath, readOnly]).toEqual([`/secrets/${volume}`, true]);
      expect(secretOf(volume)?.defaultMode).toBe(0o440);
    }
    expect(secretOf("mongodb")?.items).toEqual(isServiceName(name) ? [{ key: name, path: "uri" }] : undefined);
    const open = container.env.filter((variable) => /^(INTERNAL_SECRET|MONGODB_URI)$/.test(variable.name));
    expect(open).toEqual([]);
  });

  test.each(pods)("$name is asked how it is at its admin port, and has time to end", (pod) => {
    const { name, spec, container } = pod;
    const at = (path: string) => ({ httpGet: { path, port: "admin" } });
    expect(container.startupProbe).toMatchObject(at("/startupz"));
    expect(container.livenessProbe).toMatchObject(at("/livez"));
    expect(container.readinessProbe).toMatchObject(at("/readyz"));
    const config = configOf(pod);
    const lameDuckMs = "lameDuckMs" in config ? config.lameDuckMs : 0;
    expect(spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(lameDuckMs + STOP_LIMIT_MS + 1000);
    if (name === "gateway") expect(lameDuckMs).toBeGreaterThan(2 * 1000 * container.readinessProbe.periodSeconds);
  });

  const specOf = (kind: string, name: string): Manifest["spec"] => {
    const [found, ...more] = ofKind(manifests, kind).filter(({ metadata }) => metadata.name === `petstore-${name}`);
    expect(more).toEqual([]);
    return found?.spec;
  };

  if (isFive)
    test.each(pods)("$name goes on while pods are moved, restarted and multiplied", ({ name, labels, spec }) => {
      const deployment = specOf("Deployment", name);
      expect(deployment).toMatchObject({ strategy: { rollingUpdate: { maxUnavailable: 0 } }, minReadySeconds: 35 });
      // Or an upgrade would set it back.
      expect(deployment).not.toHaveProperty("replicas");
      expect(specOf("PodDisruptionBudget", name)).toEqual({ maxUnavailable: 1, selector: { matchLabels: labels } });
      const { scaleTargetRef, minReplicas, maxReplicas, metrics } = specOf("HorizontalPodAutoscaler", name);
      expect(scaleTargetRef).toEqual({ apiVersion: "apps/v1", kind: "Deployment", name: `petstore-${name}` });
      expect(minReplicas).toBeGreaterThan(1);
      expect(maxReplicas).toBeGreaterThan(minReplicas);
      expect(metrics).toMatchObject([{ resource: { name: "cpu", target: { type: "AverageValue" } } }]);
      expect(spec.topologySpreadConstraints).toMatchObject(
        ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map((topologyKey) => ({
          topologyKey,
          labelSelector: { matchLabels: labels },
          // Else pods that an upgrade replaces count, too.
          matchLabelKeys: ["pod-template-hash"],
        })),
      );
    });
  else
    test("there is one pod with a volume, which nothing multiplies", () => {
      const set = specOf("StatefulSet", "single");
      expect(set).toMatchObject({ replicas: 1, serviceName: "petstore-admin", podManagementPolicy: "Parallel" });
      const [{ metadata }, ...more] = set.volumeClaimTemplates;
      expect(more).toEqual([]);
      const { volumeMounts } = (pods[0] as Pod).container;
      expect(volumeMounts).toContainEqual({ name: metadata.name, mountPath: image.environment.DATA_DIR });
      expect(ofKind(manifests, "HorizontalPodAutoscaler", "PodDisruptionBudget", "Deployment")).toEqual([]);
    });

  test("Prometheus finds the admin ports where it was asked to, by the job that alerts go by", () => {
    const monitors = ofKind(manifests, "ServiceMonitor");
    expect(monitors).toHaveLength(values.monitoring?.serviceMonitor ? 1 : 0);
    for (const monitor of monitors) {
      expect(new Ajv().validate(serviceMonitor, monitor)).toBe(true);
      const { selector, endpoints, jobLabel } = monitor.spec;
      const found = ofKind(manifests, "Service").filter(({ metadata }) =>
        selects(selector.matchLabels, metadata.labels),
      );
      expect(found.map(({ metadata }) => metadata.labels[jobLabel])).toEqual(["petstore"]);
      const { spec } = found[0] as Manifest;
      expect(spec.ports.map((port: { readonly name: string }) => port.name)).toEqual([endpoints[0].port]);
      expect(pods.every(({ labels }) => selects(spec.selector, labels))).toBe(true);
    }
  });
});

const closed = (properties: object) => ({ type: "object", additionalProperties: false, properties });
/** What of monitoring.coreos.com/v1 the chart uses. */
const serviceMonitor = {
  ...closed({
    apiVersion: { const: "monitoring.coreos.com/v1" },
    kind: { const: "ServiceMonitor" },
    metadata: { type: "object" },
    spec: closed({
      jobLabel: { type: "string" },
      selector: closed({ matchLabels: { type: "object" } }),
      endpoints: {
        type: "array",
        items: closed({ port: { type: "string" }, interval: { type: "string", pattern: "^\\d+s$" } }),
      },
    }),
  }),
  required: ["apiVersion", "kind", "metadata", "spec"],
};
