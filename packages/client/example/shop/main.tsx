import { PetstoreError } from "@petstore/client";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { petstore, usePets } from "./use-pets.ts";

function Shop() {
  const { pets, error } = usePets();
  const [message, say] = useState("");
  const order = (petId: number) =>
    petstore.orders.create({ petId }).then(
      ({ id }) => say(`Order ${id} is placed.`),
      (thrown) => say(thrown instanceof PetstoreError ? `${thrown.message} ${thrown.advice}` : `${thrown}`),
    );
  return (
    <>
      <ul>
        {pets.map(({ id, name, status }) => (
          <li key={id}>
            {name} is {status}{" "}
            <button type="button" disabled={status !== "available"} onClick={() => order(id)}>
              Order {name}
            </button>
          </li>
        ))}
      </ul>
      <p role="status">{error?.message ?? message}</p>
    </>
  );
}

createRoot(document.querySelector("main") as HTMLElement).render(<Shop />);
