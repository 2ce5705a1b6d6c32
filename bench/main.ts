/** `npm run bench`: chooses what is measured. */
const [command] = process.argv.slice(2);

if (command === "growth") await import("./growth/command.ts");
else if (command === "sizes") await import("./sizes/sizes.ts");
else if (command === "engines") await import("./engines/engines.ts");
else await import("./compare/command.ts");
