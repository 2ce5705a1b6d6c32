/** Moves records into opened stores, and proves that they are there. */
import { idOf, type Line, rowOf, type Source } from "./lines.ts";
import { type AllRecords, Refused } from "./places.ts";
import type { Progress } from "./progress.ts";

/** Adds what the stores lack. Each collection goes on beyond its last id, where an earlier attempt may have stopped. */
export async function transfer(source: Source, to: AllRecords, progress: Progress): Promise<void> {
  const storeOf = (line: Pick<Line, "service">) => {
    const records = to.get(line.service);
    if (!records) throw new Error(`There is no store of ${line.service}.`);
    return records;
  };
  for await (const lines of source.lines((service, collection) => storeOf({ service }).last(collection))) {
    const groups = Map.groupBy(lines, (line) => `${line.service} ${"collection" in line ? line.collection : ""}`);
    for (const group of groups.values()) {
      const [first] = group as [Line];
      if ("collection" in first)
        await storeOf(first).add(first.collection, (group as Parameters<typeof rowOf>[0][]).map(rowOf));
      else for (const line of group) if ("sequence" in line) await storeOf(line).setSequence(line.sequence, line.last);
    }
    progress.add(lines.length);
  }
}

/** Throws `Refused` for the first record in which two sources differ. Resolves to how many they have. */
export async function prove(source: Source, copy: Source, progress: Progress): Promise<number> {
  const [those, these] = [each(source), each(copy)];
  for (let count = 0; ; ) {
    const [that, found] = [(await those.next()).value, (await these.next()).value];
    if (that === undefined && found === undefined) return count;
    if (JSON.stringify(that) !== JSON.stringify(found))
      throw new Refused(
        `The copy is not what it was made of: it differs at ${nameOf(that ?? found)}. Nothing of it is kept: begin anew.`,
      );
    if (that && "collection" in that) count++;
    progress.add(1);
  }
}

async function* each(source: Source): AsyncGenerator<Line, undefined> {
  for await (const lines of source.lines()) yield* lines;
  return undefined;
}

const nameOf = (line: Line | undefined): string =>
  line ? `${line.service}/${"collection" in line ? line.collection : "sequence"}/${idOf(line)}` : "";

/** How far sequences are moved on: further than anybody took numbers since the records were read. */
const GAP = 1_000_000;

/** Moves the sequences of ids on, so that none that was given since the records were read is given again. */
export async function moveSequencesOn(to: AllRecords): Promise<void> {
  for (const service of ["pet", "category", "order"] as const) {
    const records = to.get(service);
    const last = new Map(await records?.sequences()).get(service) ?? 0;
    await records?.setSequence(service, last + GAP);
  }
}
