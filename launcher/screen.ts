/** What the launcher tells people. It speaks on standard error: standard output belongs to the processes' logs. */
import { styleText } from "node:util";
import type { LauncherConfig } from "./config.ts";

type Style = Parameters<typeof styleText>[0];

const howToGet = {
  "API key": "an API key, such as `npm run -s keys -- create --name me --scopes '*'` prints",
  "access token": "an access token of the issuer",
};

/** One line or several. */
export const say = (text: string): void => void process.stderr.write(`${text}\n`);

// styleText leaves colours out when the stream is no terminal, or NO_COLOR is set.
export const paint = (style: Style, text: string): string => styleText(style, text, { stream: process.stderr });

/** A process, and where it is reached. */
export interface Place {
  readonly name: string;
  readonly kind: string;
  readonly url: string;
}

/** Where everything is, and what to try. */
export function welcome(
  places: readonly Place[],
  seconds: number,
  { dataDir, authority, credential }: Pick<LauncherConfig, "dataDir" | "authority" | "credential">,
): string {
  const gateways = places.filter(({ kind }) => kind === "gateway");
  const services = places.filter(({ kind }) => kind !== "gateway");
  const gateway = gateways[0]?.url ?? "";
  const width = `${gateway}/docs`.length + 3;
  const longest = Math.max(...places.map(({ name }) => name.length));
  const row = (name: string, url: string, what: string) =>
    `  ${paint("bold", name.padEnd(longest + 2))}${url.padEnd(width)}${what}`;
  const several = gateways.length > 1 ? ` (${gateways.length} processes)` : "";
  const rows = [
    row("gateway", gateway, `HTTP and JSON, Connect, gRPC-Web${several}`),
    ...services.map(({ name, url }) => row(name, url, "gRPC, gRPC-Web, Connect")),
  ];
  const shown = credential ? ' -H "authorization: Bearer $CREDENTIAL"' : "";
  const curl = authority === undefined ? "curl" : `curl --cacert ${authority}`;
  const post = (path: string, body: object) =>
    `  ${curl} -X POST ${gateway}${path}${shown} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    "",
    paint("green", `The petstore is ready (${seconds.toFixed(1)} s).`),
    "",
    ...rows,
    row("docs", `${gateway}/docs`, "every operation, described"),
    "",
    ...(credential ? [`Try, with ${howToGet[credential]}:`, "  read -rs CREDENTIAL"] : ["Try:"]),
    post("/categories", { name: "dog" }),
    post("/pets", { name: "Rex", categoryId: 1 }),
    `  ${curl} ${gateway}/pets${shown}`,
    "",
    `Data is in ${dataDir ?? "MongoDB"}. Ctrl-C stops everything.`,
    "",
  ].join("\n");
}
