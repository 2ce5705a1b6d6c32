/** Which operation a request asks for: of all whose verb and path it fits the most specific one. */
import { ANY_VERB, VERBS } from "../contract/binding.ts";
import type { Operation } from "../contract/operation.ts";
import { decoded, isRest, type Segment } from "../contract/template.ts";

export type Router = ReturnType<typeof createRouter>;

/** What can follow the segments that led here. */
interface Node {
  readonly literals: Map<string, Node>;
  one: Node | undefined;
  /** For a path that goes on in any way, or ends: the most specific first. */
  rests: readonly Rest[];
  /** For a path that ends here. */
  end: Operation | undefined;
}

/** What follows a "**", up to the end of the path. */
interface Rest {
  readonly tail: readonly Segment[];
  readonly operation: Operation;
}

/** The operations of one verb, by their custom verbs; without one under "". */
type Trees = Map<string, Node>;

/** Compiles the search. Of two operations that no request can tell apart the first is found. */
export function createRouter(operations: readonly Operation[], basePath: string) {
  const base = basePath
    .split("/")
    .slice(1)
    .map((literal) => ({ literal }));
  const byVerb = new Map<string, Trees>();
  function add(verb: string, operation: Operation): void {
    const { customVerb, segments } = operation.template;
    const trees = byVerb.get(verb) ?? new Map<string, Node>();
    byVerb.set(verb, trees);
    const root = trees.get(customVerb) ?? newNode();
    trees.set(customVerb, root);
    addTo(root, [...base, ...segments], operation);
  }
  for (const operation of operations) if (operation.verb !== ANY_VERB) add(operation.verb, operation);
  for (const operation of operations) if (operation.verb === "GET") add("HEAD", operation);
  // Behind the others, so that it gets what they leave. OPTIONS is answered with what there is.
  for (const operation of operations)
    if (operation.verb === ANY_VERB) for (const verb of VERBS) if (verb !== "OPTIONS") add(verb, operation);

  /**
   * The operation for a request target as it was sent, without scheme and host; undefined when there is none. HEAD goes to GET
   * where nothing else has it.
   *
   * Segment by segment from the left, fixed text goes before `{field}` and "*", and those before "**". A custom verb goes
   * before all that: "/books/3:lend" is text without a verb only where no operation has it. Whatever the path is, every
   * node of the contract's tree is visited once at most.
   */
  function find(verb: string, target: string): Operation | undefined {
    const trees = byVerb.get(verb);
    if (!trees || !target.startsWith("/")) return undefined;
    const path = pathIn(target);
    const plain = trees.get("");
    if (trees.size > (plain ? 1 : 0)) {
      const colon = path.lastIndexOf(":");
      const customVerb = colon > path.lastIndexOf("/") ? textOf(path.slice(colon + 1)) : "";
      const tree = customVerb === "" ? undefined : trees.get(customVerb);
      const found = tree && search(tree, path.slice(0, colon), 1);
      if (found) return found;
    }
    return plain && search(plain, path, 1);
  }
  /** All that any operation has. */
  const verbs: readonly string[] = [...byVerb.keys()];
  /** All by which there is an operation at a target. */
  const verbsAt = (target: string): string[] => verbs.filter((verb) => find(verb, target));
  return { find, verbsAt, verbs };
}

const newNode = (): Node => ({ literals: new Map(), one: undefined, rests: [], end: undefined });

function addTo(root: Node, segments: readonly Segment[], operation: Operation): void {
  let node = root;
  for (const [i, segment] of segments.entries()) {
    if (isRest(segment)) {
      const rest = { tail: segments.slice(i + 1), operation };
      node.rests = [...node.rests, rest].sort((a, b) =>
        freedom(a) < freedom(b) ? -1 : freedom(a) > freedom(b) ? 1 : 0,
      );
      return;
    }
    const next = ("literal" in segment ? node.literals.get(segment.literal) : node.one) ?? newNode();
    if ("literal" in segment) node.literals.set(segment.literal, next);
    else node.one = next;
    node = next;
  }
  node.end ??= operation;
}

/** Sorts fixed text before any text, segment by segment, and what goes on before what ends. */
const freedom = ({ tail }: Rest): string => `${tail.map((segment) => ("literal" in segment ? 0 : 1)).join("")}2`;

/** Goes on behind a slash of the path, or behind its end. */
function search(node: Node, path: string, at: number): Operation | undefined {
  if (at > path.length) return node.end ?? searchRests(node, path, at);
  const slash = path.indexOf("/", at);
  const end = slash < 0 ? path.length : slash;
  if (node.literals.size > 0) {
    const next = node.literals.get(textOf(path.slice(at, end)));
    const found = next && search(next, path, end + 1);
    if (found) return found;
  }
  // One segment of any text has some.
  return (node.one && end > at ? search(node.one, path, end + 1) : undefined) ?? searchRests(node, path, at);
}

function searchRests({ rests }: Node, path: string, at: number): Operation | undefined {
  for (const { tail, operation } of rests) if (endsWith(path, at, tail)) return operation;
  return undefined;
}

/** Whether the last segments of a path, all of them behind that position, fit. */
function endsWith(path: string, at: number, tail: readonly Segment[]): boolean {
  let end = path.length;
  for (let i = tail.length - 1; i >= 0; i--) {
    const segment = tail[i] as Segment;
    const start = path.lastIndexOf("/", end - 1) + 1;
    if (start < at || start === end) return false;
    if ("literal" in segment && segment.literal !== textOf(path.slice(start, end))) return false;
    end = start - 1;
  }
  return true;
}

/** The path that a target begins with. */
function pathIn(target: string): string {
  const query = target.indexOf("?");
  const path = query < 0 ? target : target.slice(0, query);
  const fragment = path.indexOf("#"); // which some clients send
  return fragment < 0 ? path : path.slice(0, fragment);
}

/** What can't be decoded is no fixed text of any template. */
const textOf = (part: string): string => (part.includes("%") ? (decoded(part) ?? part) : part);
