/** Enum values that the contract does not know: a service is newer than this server. As in proto3 JSON they are numbers. */
import type { DescEnum } from "@bufbuild/protobuf";

/** Called when such a value is written. */
export type TellUnknown = (desc: DescEnum, value: number) => void;

/** Most values that are logged. A faulty service can send any number. */
const MAX_LOGGED = 100;

/** Logs each value once. */
export function logUnknownValues(log: { warn(about: object, message: string): void }): TellUnknown {
  const logged = new Set<string>();
  return ({ typeName }, value) => {
    const name = `${typeName} ${value}`;
    if (logged.has(name) || logged.size === MAX_LOGGED) return;
    logged.add(name);
    log.warn({ enum: typeName, value }, "an enum value of a newer service is answered as its number");
  };
}
