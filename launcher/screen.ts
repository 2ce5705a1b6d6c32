/** What the launcher prints for people. It uses standard error: standard output belongs to the processes' logs. */
import { styleText } from "node:util";
import type { LauncherConfig } from "./config.ts";

type Style = Parameters<typeof styleText>[0];

const howToGet = {
  "API key": "an API key, such as `npm run -s keys -- create --name me --scopes '*'` prints",
  "access token": "an access token of the issuer",
};

/** The default address of the demo. */
const DEFAULT_URL = "http://127.0.0.1:8080";

// If the reader of standard error has gone, the launcher goes on.
process.stderr.on("error", () => {});

export const say = (text: string): void => void process.stderr.write(`${text}\n`);

// styleText leaves colours out when the stream is no terminal, or NO_COLOR is set.
export const paint = (style: Style, text: string): string => styleText(style, text, { stream: process.stderr });

export interface Endpoint {
  readonly name: string;
  readonly kind: string;
  readonly url: string;
}

/** An address as a shell takes it: the brackets of an IPv6 address are a pattern to some. */
const typed = (url: string): string => (url.includes("[") ? `'${url}'` : url);

/** The addresses of everything, and commands to try. */
export function welcome(
  endpoints: readonly Endpoint[],
  seconds: number,
  { dataDir, authority, credential }: Pick<LauncherConfig, "dataDir" | "authority" | "credential">,
): string {
  const gateways = endpoints.filter(({ kind }) => kind === "gateway");
  const services = endpoints.filter(({ kind }) => kind !== "gateway");
  const gateway = gateways[0]?.url ?? "";
  const several = gateways.length > 1 ? ` (${gateways.length} processes)` : "";
  const rows: readonly Row[] = [
    ["Console", `${gateway}/`, "pets, orders and stock in the browser, live"],
    ["API", gateway, `HTTP and JSON, Connect, gRPC-Web${several}`],
    ["Docs", `${gateway}/docs`, "every operation, described"],
    ...services.map(({ name, url }): Row => [name, url, "gRPC, gRPC-Web, Connect"]),
  ];
  const shown = credential ? ' -H "authorization: Bearer $CREDENTIAL"' : "";
  const curl = authority === undefined ? "curl" : `curl --cacert ${authority}`;
  const trust = (variable: string) => (authority === undefined ? "" : `${variable}=${authority} `);
  const [option, variable] =
    gateway === DEFAULT_URL ? ["", ""] : [` -- --url ${typed(gateway)}`, `PETSTORE_URL=${typed(gateway)} `];
  // Each is a whole line: not every shell takes what follows "#" for a comment.
  const trials = {
    "A shop with 300 pets, and customers until Ctrl-C": `${trust("NODE_EXTRA_CA_CERTS")}npm run demo${option}`,
    "A category, a pet in it, and an order for the pet": `${trust("CURL_CA_BUNDLE")}${variable}sh examples/curl/order.sh`,
    "All pets": `${curl} ${typed(`${gateway}/pets`)}${shown}`,
  };
  return [
    "",
    ...table(rows),
    "",
    ...(credential
      ? [`Try in another terminal, with ${howToGet[credential]}:`, "  read -rs CREDENTIAL; export CREDENTIAL"]
      : ["Try in another terminal:"]),
    ...Object.entries(trials).flatMap(([what, command]) => [`  ${what}:`, `    ${paint("bold", command)}`]),
    "",
    `${paint("green", "The petstore is ready")} (${seconds.toFixed(1)} s). Data is in ${dataDir ?? "MongoDB"}. Ctrl-C stops everything.`,
    "",
  ].join("\n");
}

type Row = readonly [name: string, url: string, what: string];

/** In columns, the first of them bold. */
function table(rows: readonly Row[]): readonly string[] {
  const width = (column: 0 | 1) => Math.max(...rows.map((row) => row[column].length));
  const [first, second] = [width(0) + 2, width(1) === 0 ? 0 : width(1) + 3];
  return rows.map(([name, url, what]) =>
    `  ${paint("bold", name.padEnd(first))}${url.padEnd(second)}${what}`.trimEnd(),
  );
}
