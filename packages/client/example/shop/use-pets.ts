import { createPetstore, type Pet, type PetstoreError } from "@petstore/client";
import { useEffect, useState } from "react";

/** At the address that the page came from. */
export const petstore = createPetstore({ baseUrl: "" });

/** All pets, up to date for as long as the component is there. */
export function usePets() {
  const [pets, setPets] = useState<readonly Pet[]>([]);
  const [error, setError] = useState<PetstoreError>();
  useEffect(() => {
    const left = new AbortController();
    async function follow() {
      const shop = new Map<number, Pet>();
      let isWhole = false; // a snapshot comes pet by pet
      for await (const change of petstore.pets.watch({ snapshot: true }, { signal: left.signal })) {
        if (change.type === "snapshot") {
          isWhole = false;
          shop.clear();
        } else if (change.type === "synced") isWhole = true;
        else if (change.type === "deleted") shop.delete(change.record.id);
        else shop.set(change.record.id, change.record);
        if (isWhole) setPets([...shop.values()]);
      }
    }
    follow().catch(setError);
    return () => left.abort(); // the loop ends, without an error
  }, []);
  return { pets, error };
}
