// The first step of an installation. npm leaves out what is optional and not for the Node that it runs on, such as rolldown's
// compiled part, which builds the console. That Node may be older than the one that npm brings along, and npm's `user-agent`
// names it. Plain JavaScript, as it runs on whatever Node is there.
const [, version = process.versions.node] = /\bnode\/v([\d.]+)/.exec(process.env.npm_config_user_agent) || [];
const [major, minor] = version.split(".").map(Number);
// As `engines` in package.json says.
if (!((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22)) {
  console.error(
    `petstore can't be installed with Node ${version}: it takes 20.19 or later of 20, or 22.12 or newer. https://nodejs.org/en/download`,
  );
  process.exit(1);
}
