/** Performs an operation over HTTP. */
import { isRead, type Kind, kindOf, type Operation } from "./operations.ts";
import { nameOf, notFound, type Outcome, type Shown } from "./perform.ts";

interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: object;
}

export const paths: Record<Kind, string> = {
  category: "/categories",
  pet: "/pets",
  order: "/store/orders",
  inventory: "/store/inventory",
};
const dateOf = (mark: number) => new Date(mark * 1000).toISOString();

function requestOf(operation: Operation): Request {
  const name = nameOf(operation.mark);
  const shipDate = dateOf(operation.mark);
  const all = paths[kindOf(operation)];
  const path = "id" in operation ? `${all}/${operation.id}` : all;
  switch (operation.do) {
    case "create category":
      return { method: "POST", path, body: { name } };
    case "rename category":
      return { method: "PATCH", path, body: { name } };
    case "create pet":
    case "change pet": {
      const { category: categoryId, status } = operation;
      return { method: operation.do === "create pet" ? "POST" : "PATCH", path, body: { name, categoryId, status } };
    }
    case "place order": {
      const { pet: petId, quantity, complete } = operation;
      return { method: "POST", path, body: { petId, quantity, complete, shipDate } };
    }
    case "date order":
      return { method: "PATCH", path, body: { shipDate } };
    case "complete order":
      return { method: "PATCH", path, body: { complete: true } };
    case "stock":
      return { method: "PATCH", path, body: { quantity: operation.quantity } };
    case "delete category":
    case "delete pet":
    case "cancel order":
      return { method: "DELETE", path };
    default:
      return { method: "GET", path: "how" in operation && operation.how !== "alone" ? listed(operation) : path };
  }
}

const listed = (operation: Operation & { readonly id: number }) =>
  `${paths[kindOf(operation)]}?${kindOf(operation) === "inventory" ? "petId" : "id"}=${operation.id}`;

export interface Body extends Readonly<Record<string, string | number | boolean | undefined>> {
  readonly shipDate?: string;
}

/** The same members as in `perform.ts`. */
const views: Record<Kind, (body: Body) => Shown["view"]> = {
  category: ({ name }) => ({ name }),
  pet: ({ name, categoryId: category, status }) => ({ name, category, status }),
  order: ({ petId: pet, quantity, complete, shipDate }) => ({
    pet,
    quantity,
    complete,
    date: shipDate === undefined ? undefined : Date.parse(shipDate) / 1000,
  }),
  inventory: ({ quantity, status }) => ({ quantity, status }),
};

export const shownBy = (kind: Kind, body: Body, etag: string | null): Shown => ({
  kind,
  id: Number(kind === "inventory" ? body.petId : body.id),
  version: Number(etag?.replaceAll('"', "")),
  view: views[kind](body),
});

/** Sends an operation once. Throws when the gateway can't be reached. */
export async function performOverHttp(gateway: string, operation: Operation, send = fetch): Promise<Outcome> {
  const { method, path, body } = requestOf(operation);
  const headers = {
    ...(body && { "content-type": "application/json" }),
    ...(operation.key !== undefined && { "idempotency-key": operation.key }),
    ...(operation.match !== undefined && { "if-match": `"${operation.match}"` }),
  };
  const response = await send(gateway + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (response.status === 204) return { is: "done" };
  const answer = (await response.json()) as Body;
  const kind = kindOf(operation);
  if (Array.isArray(answer)) return foundBy(operation, kind, answer);
  if (response.ok) {
    const shown = shownBy(kind, answer, response.headers.get("etag"));
    return { is: "done", shown, ...(isRead(operation) && { found: [shown.id] }) };
  }
  if (response.status === 503 || response.status === 504) return { is: "unknown" };
  return { is: "refused", reason: String(answer.code) };
}

function foundBy(operation: Operation, kind: Kind, records: readonly Body[]): Outcome {
  const found = records.map((record) => Number(kind === "inventory" ? record.petId : record.id));
  return "id" in operation && found.length === 0 ? { is: "refused", reason: notFound(kind) } : { is: "done", found };
}

/** The present record; undefined if there is none. */
export async function readOverHttp(gateway: string, kind: Kind, id: number): Promise<Shown | undefined> {
  const response = await fetch(`${gateway}${paths[kind]}/${id}`);
  const answer = (await response.json()) as Body;
  if (response.ok) return shownBy(kind, answer, response.headers.get("etag"));
  if (response.status === 404) return undefined;
  throw new Error(`${kind} ${id} can't be read: ${response.status} ${JSON.stringify(answer)}`);
}
