/** Packages that only some need, and that the command's own does not bring along. */
import manifest from "../package.json" with { type: "json" };

const TRACES = Object.entries(manifest.peerDependencies).filter(([name]) => name.startsWith("@opentelemetry/"));

/** What to say of an error: what to install, if packages are missing for the traces that were asked for. */
export function explained(error: Error & { readonly code?: unknown }): string {
  if (error.code !== "ERR_MODULE_NOT_FOUND" || !error.message.includes("'@opentelemetry/")) return error.message;
  const packages = TRACES.map(([name, range]) => `"${name}@${range}"`).join(" ");
  return `OTEL_EXPORTER_OTLP_ENDPOINT asks for traces, which need packages that are not installed: npm install ${packages}`;
}
