/** What must hold between an idempotency key and the record that it stands for, and of the sequence that gives ids. Pure. */
import type { Doc } from "@petstore/store/port";
import type { ServiceName } from "../../processes/names.ts";
import { tagOf } from "../../services/records/idempotency-keys.ts";
import type { KeyDoc } from "../../services/records/key-transitions.ts";
import { type Finding, finding } from "../findings.ts";

/** A key that has not expired. Its record may still be made, by a client that comes again within the day. */
export function wrongInKey(
  service: ServiceName,
  { _id, recordId, fingerprint }: KeyDoc,
  record: (Doc & { readonly tag?: string | undefined }) | undefined,
): Finding[] {
  if (record?.tag === undefined || record.tag === tagOf(_id + fingerprint)) return [];
  const detail = "The key stands for a record that another request has made.";
  const mend: Finding["mend"] = async ({ keys }) => keys[service]?.remove(_id, () => true);
  return [finding("key-dangling", [`${service}-key/${_id}`, `${service}/${recordId}`], detail, { mend })];
}

/** `highest` is the highest id that is in use. */
export function wrongInSequence(service: ServiceName, last: number, highest: number): Finding[] {
  if (last >= highest) return [];
  return [
    finding(
      "sequence-behind",
      [`sequence/${service}`, `${service}/${highest}`],
      `The next id would be ${last + 1}, and ids up to ${highest} are in use.`,
      { mend: ({ stores }) => stores[service].nextId(service, { above: highest }) },
    ),
  ];
}
