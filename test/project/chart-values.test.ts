/** What the values of charts/petstore can be, by its values.schema.json, which Helm reads. */
import { existsSync, readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { CHART, declaredSettings, podsOf, rendered, valuesFiles, yamlIn } from "./chart.ts";

const schema = JSON.parse(readFileSync(`${CHART}/values.schema.json`, "utf8"));
// It would like the types of parts to be said again.
const validate = new Ajv({ strict: false }).compile(schema);

/** As Helm adds values to those of values.yaml. */
function added<T>(defaults: T, values: T): T {
  const isMap = (value: unknown): value is object => typeof value === "object" && !Array.isArray(value);
  if (!isMap(defaults) || !isMap(values)) return values ?? defaults;
  const keys = Object.keys({ ...defaults, ...values }) as (keyof T)[];
  return Object.fromEntries(keys.map((key) => [key, added(defaults[key], values[key])])) as T;
}

const takes = (values: object) => validate(added(yamlIn("values.yaml"), values));
const five = yamlIn("ci/five.yaml");
const single = yamlIn("ci/single.yaml");

test.each(valuesFiles)("%s is taken", (file) => {
  takes(yamlIn(`ci/${file}.yaml`));
  expect(validate.errors).toBeNull();
});

const page = readFileSync("docs/kubernetes.md", "utf8");
const shownAs = (name: string) =>
  [...page.matchAll(/^```yaml\n# (\S+)\n(.*?)^```/gms)].flatMap(([, file, text = ""]) => (file === name ? text : []));
const shown = shownAs("values.yaml");
test.each(shown)("what docs/kubernetes.md shows is taken: %s", (text) => {
  takes(parse(text));
  expect(validate.errors).toBeNull();
});
test("docs/kubernetes.md shows both ways", () => expect(shown).toHaveLength(2));

test("docs/kubernetes.md shows a Job that may do no more than the pods, and reads what is there", () => {
  const { spec } = parse(shownAs("job.yaml")[0] ?? "").spec.template;
  const [container] = spec.containers;
  const [pod] = podsOf(rendered("five"));
  expect(pod?.spec.securityContext).toMatchObject(spec.securityContext);
  expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
  expect(container.securityContext).toEqual(pod?.container.securityContext);
  expect(existsSync(container.args[0])).toBe(true);
  expect(declaredSettings().map((name) => `${name}_FILE`)).toContain(container.env[0].name);
  expect(container.env[0].value).toContain(`${container.volumeMounts[0].mountPath}/`);
  expect(spec.volumes[0].name).toBe(container.volumeMounts[0].name);
});

test.each(["image", "mongodb", "internalSecret", "auth"])("%s has to be said", (name) => {
  const { [name]: _, ...others } = five;
  expect(takes(others)).toBe(false);
});

test.each([
  ["a secret of MongoDB that no process would read", { ...single, mongodb: { uriSecret: "petstore-mongodb" } }],
  ["keys without their file", { ...five, auth: "keys" }],
  ["a file of keys that nobody asks for", { ...five, apiKeysSecret: "petstore-keys" }],
  ["tokens of nobody", { ...five, auth: "jwt" }],
  ["a misspelled value", { ...five, singleProces: true }],
  ["a misspelled setting", { ...five, settings: { RATELIMIT: "600/min" } }],
  ["a setting that the chart makes", { ...five, settings: { HOST: "127.0.0.1" } }],
  // Helm would write it as 1e+06.
  ["a number as a setting", { ...five, settings: { MAX_CONNECTIONS: 1_000_000 } }],
])("%s is refused", (_, values) => expect(takes(values)).toBe(false));

describe("settings", () => {
  const made = ["five", "single", "production"].flatMap((file) =>
    podsOf(rendered(file)).flatMap(({ container }) => container.env.map(({ name }) => name.replace(/_FILE$/, ""))),
  );
  const given = Object.keys(yamlIn("ci/production.yaml").settings);
  const notHere = [
    ...["PORT", "PORT_BASE", "ADMIN_PORT", "REPLICA", "REPLICAS", "DATA_DIR", "LISTEN_FDS"], // the chart and the image know
    ...["INTERNAL_TLS_CERT", "INTERNAL_TLS_KEY", "FAULTS_FILE", "FAULTS_SEED"], // files that no Secret brings
    ...["OTEL_SERVICE_NAME", "CRASH_AT"], // one name for all processes; for tests
  ];
  test("are all of those that are declared but what the chart makes and what is for no cluster", () => {
    const left = new Set([...made, ...notHere, "API_KEYS_FILE"].filter((name) => !given.includes(name)));
    const open = declaredSettings().filter((name) => !left.has(name));
    expect(schema.properties.settings.propertyNames.enum).toEqual(open.sort());
  });
});
