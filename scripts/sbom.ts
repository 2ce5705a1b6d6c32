/** The bill of materials of a release: all that package-lock.json pins, in CycloneDX. */
import { execFileSync } from "node:child_process";

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
}

interface Sbom {
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: Component };
  readonly components: readonly Component[];
}

/** Of the sources in a directory, and the same wherever and whenever it is made. */
export function billOfMaterials(directory: string, committed: Date): string {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const made = execFileSync("npm", args, { cwd: directory, encoding: "utf8", maxBuffer: 64 * 2 ** 20 });
  // npm draws a number for each; CycloneDX does not require one.
  const { serialNumber: _, ...sbom }: Sbom = JSON.parse(made);
  const metadata = { ...sbom.metadata, timestamp: committed.toISOString(), component: named(sbom.metadata.component) };
  return `${JSON.stringify({ ...sbom, metadata, components: sbom.components.map(named) }, null, 2)}\n`;
}

/** By its name, where npm takes that of its folder: for the root and the workspaces. */
function named(component: Component): Component {
  const reference = component["bom-ref"];
  return { ...component, name: reference.slice(0, reference.lastIndexOf("@")) };
}
