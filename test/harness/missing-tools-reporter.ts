/** Reports in the last lines of a run which tools were missing, because a skipped test proves nothing. */
import type { Reporter } from "vitest/node";
import { chromiumMissing } from "./chromium-program.ts";
import { dnsMissing } from "./dns.ts";
import { exampleToolsMissing } from "./example-tools.ts";
import { mongodMissing } from "./mongod.ts";
import { networkMissing } from "./network.ts";
import { nginxMissing } from "./nginx.ts";
import { prometheusMissing } from "./prometheus.ts";
import { smallDiskMissing } from "./small-disk.ts";

const MONGOD = `
  NOT RUN: the tests on MongoDB, for there is no mongod here.
  To run them, fetch one with .ci/mongod (x86-64 Linux), or install MongoDB 6.0 or newer and put it in the PATH or MONGOD.
`;
const NETWORK = `
  NOT RUN: the tests that cut the network between members of MongoDB, and the pods of the Helm chart.
  To run them, be root on Linux and install ip and nft (Debian: apt-get install iproute2 nftables).
`;
const DNS = `
  NOT RUN: the test with a DNS server of its own.
  To run it, be root on Linux, with unshare and mount (Debian: apt-get install util-linux mount).
`;
const DISK = `
  NOT RUN: the test on a full disk.
  To run it, be root on Linux, where a small disk can be mounted.
`;
const EXAMPLES = `
  NOT RUN: the examples in Python and Go, and the clients generated from the OpenAPI document.
  To run them, install what they need with .ci/examples (it wants Python 3).
`;

const NGINX = `
  NOT RUN: the tests of the proxy in examples/proxy.
  To run them, be root on Debian, and fetch nginx with .ci/nginx or put the path of Debian's into NGINX.
`;

const PROMETHEUS = `
  NOT RUN: the tests with a Prometheus and its promtool.
  To run them, fetch both with .ci/prometheus (Debian), or put the folder in which they are into PROMETHEUS.
`;

const CHROMIUM = `
  NOT RUN: the tests of the console in a browser, for there is no Chromium here.
  To run them, install one (Debian: apt-get install chromium).
`;

const found = () => [
  ...(mongodMissing ? [MONGOD] : []),
  ...(networkMissing ? [NETWORK] : []),
  ...(dnsMissing ? [DNS] : []),
  ...(smallDiskMissing ? [DISK] : []),
  ...(nginxMissing ? [NGINX] : []),
  ...(chromiumMissing ? [CHROMIUM] : []),
  ...(prometheusMissing ? [PROMETHEUS] : []),
  ...(exampleToolsMissing ? [EXAMPLES] : []),
];

/** With CI=true a run with missing tools fails before it starts. */
export function mongodReporter(environment = process.env, missing: readonly string[] = found()): Reporter {
  if (missing.length === 0) return {};
  if (environment.CI === "true") throw new Error(missing.join(""));
  // Printed at exit, to come after the summary, which is printed at the same event.
  return { onTestRunEnd: () => void process.once("exit", () => process.stderr.write(missing.join(""))) };
}
