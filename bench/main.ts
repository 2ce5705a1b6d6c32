/** `npm run bench`: selects the measurement. */
import { command } from "./options.ts";

await command(async () => {
  const [measurement] = process.argv.slice(2);
  if (measurement === "growth") await import("./growth/command.ts");
  else if (measurement === "sizes") await import("./sizes/sizes.ts");
  else if (measurement === "engines") await import("./engines/engines.ts");
  else if (measurement === "links") await import("./links/links.ts");
  else if (measurement === "overload") await import("./overload/command.ts");
  else if (measurement === "watch") await import("./watch/command.ts");
  else if (measurement === "replicas") await import("./replicas.ts");
  else if (measurement === "cores") await import("./cores.ts");
  else if (measurement === "telemetry") await import("./telemetry/command.ts");
  else if (measurement === "transcoder") await import("./transcoder/command.ts");
  else await import("./compare/command.ts");
});
