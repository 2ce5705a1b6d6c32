// npm 10 installs the pinned Node, but forgets its link in node_modules/.bin: the packages for other platforms, which it
// passes over, claim the same name. This makes up for it. Plain JavaScript, as it runs on whatever Node is there.
import "./require-packages.mjs";
import { execSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";

const linked = ["node", "node.cmd"].some((name) => existsSync(`node_modules/.bin/${name}`));
const installed = readdirSync("node_modules").filter((name) => /^node-(bin-)?(linux|darwin|win)-/.test(name));
if (!linked && installed.length > 0) {
  execSync(`npm rebuild --ignore-scripts ${installed.join(" ")}`, { stdio: ["ignore", "ignore", "inherit"] });
}
