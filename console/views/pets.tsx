import type { NewPet, Pet } from "@petstore/client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { notify } from "../notices.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Choice, Filters, IdFilter, idIn, NameFilter } from "../parts/filters.tsx";
import { type FieldSpec, RecordForm, type Theirs, type Values } from "../parts/form.tsx";
import { useKeys } from "../parts/idempotency-key.ts";
import { ListView, usePagedList } from "../parts/list-view.tsx";
import { Name } from "../parts/name.tsx";
import { Status, statusOf, statusOptions, statusWord } from "../parts/status.tsx";
import { petstore } from "../petstore.ts";
import type { NamedRecord } from "../records/listing.ts";
import { nameOf } from "../records/names.ts";
import { idMeant, labelOf } from "../records/offers.ts";
import { firstPage } from "../records/paged-list.ts";
import { unlessGone, written } from "../records/written.ts";
import { hrefOf } from "../route.ts";
import { CreateCategory } from "./categories.tsx";
import { OrderForm } from "./order-form.tsx";

type Open =
  | { readonly what: "create" | "create category" }
  | { readonly what: "edit" | "delete" | "order"; readonly pet: Pet };

export function Pets() {
  const [open, show] = useState<Open>();
  const list = usePagedList<"pet">((query) => {
    const status = statusOf(query.get("status"));
    const categoryId = idIn(query, "category");
    const id = idIn(query, "id");
    return {
      kind: "pet",
      idOf: (pet) => pet.id,
      matches: (pet) =>
        (status === undefined || pet.status === status) &&
        (categoryId === undefined || pet.categoryId === categoryId) &&
        (id === undefined || pet.id === id),
      key: "id",
      read: (page, options) => firstPage(petstore.pets.list({ ...page, status, categoryId, id }, options)),
    };
  });
  return (
    <>
      <ListView
        title="Pets"
        intro="What the shop sells and has sold. The status follows the stock and the orders."
        list={list}
        create={{ label: "New pet", onClick: () => show({ what: "create" }) }}
        columns={[
          { label: "ID", cell: ({ id }) => `${id}`, isNumber: true },
          {
            label: "Name",
            isHead: true,
            cell: ({ id, name }) => (
              <span class="named">
                <Avatar id={id} name={name} />
                <Name>{name}</Name>
              </span>
            ),
          },
          {
            label: "Category",
            cell: ({ categoryId }) => (
              <a href={hrefOf("pets", { category: `${categoryId}` })}>
                <Name>{nameOf("category", categoryId) ?? `${categoryId}`}</Name>
              </a>
            ),
          },
          { label: "Status", cell: ({ status }) => <Status status={status} /> },
        ]}
        actions={(pet) => (
          <>
            {canBeOrdered(pet) && (
              <button type="button" onClick={() => show({ what: "order", pet })}>
                Order<span class="unseen"> {pet.name}</span>
              </button>
            )}
            <a class="button" href={hrefOf("orders", { pet: `${pet.id}` })}>
              See orders<span class="unseen"> for {pet.name}</span>
            </a>
            <button type="button" onClick={() => show({ what: "edit", pet })}>
              Edit<span class="unseen"> {pet.name}</span>
            </button>
            <button type="button" onClick={() => show({ what: "delete", pet })}>
              Delete<span class="unseen"> {pet.name}</span>
            </button>
          </>
        )}
        filters={
          <Filters search={<NameFilter />}>
            <Choice name="status" label="Status" all="any" options={statusOptions} />
            <IdFilter name="category" label="Category" offered="category" />
            <IdFilter name="id" label="ID" />
          </Filters>
        }
        empty={{
          all: "There are no pets yet. Each belongs to a category, so begin with one.",
          filtered: "No pet matches.",
          step: <FirstSteps open={open} show={show} />,
        }}
      />
      {open?.what === "create category" && <CreateCategory onClose={() => show(undefined)} />}
      {open?.what === "create" && <CreatePet onClose={() => show(undefined)} />}
      {open?.what === "edit" && <EditPet pet={open.pet} onClose={() => show(undefined)} />}
      {open?.what === "delete" && <DeletePet pet={open.pet} onClose={() => show(undefined)} />}
      {open?.what === "order" && <OrderForm pet={open.pet} onClose={() => show(undefined)} />}
    </>
  );
}

interface FirstStepsProps {
  readonly open: Open | undefined;
  readonly show: (open: Open) => void;
}

/** The next one of them stands out. */
function FirstSteps({ open, show }: FirstStepsProps) {
  const [next, setNext] = useState("");
  useEffect(() => {
    const read = async () => {
      const { items } = await firstPage(petstore.categories.list({ limit: 1 }));
      setNext(items.length > 0 ? "pet" : "category");
    };
    read().catch(() => {}); // without an answer none does
  }, [open]);
  return (
    <>
      <button
        type="button"
        class={next === "category" ? "primary" : ""}
        onClick={() => show({ what: "create category" })}
      >
        Create a category
      </button>
      <button type="button" class={next === "pet" ? "primary" : ""} onClick={() => show({ what: "create" })}>
        Create the first pet
      </button>
    </>
  );
}

/** Of a status that this page does not know, the petstore is asked. */
const canBeOrdered = ({ status }: Pet): boolean => status !== "pending" && status !== "sold";

/** A coloured tile with the first letter of a name, the same for the same record. */
const Avatar = ({ name, id }: Pick<Pet, "name" | "id">) => (
  <span class="avatar" style={{ "--hue": `${(id % 6) * 60}` }} aria-hidden="true">
    {[...name][0]?.toUpperCase()}
  </span>
);

const fieldsWith = (withStatus: string): readonly FieldSpec[] => [
  { name: "name", label: "Name", missing: "Give the pet a name." },
  {
    name: "categoryId",
    label: "Category",
    offered: "category",
    missing: "Choose the category that the pet belongs to.",
    hint: "Type the beginning of its name. There is none yet? Create it first, under Categories.",
  },
  { name: "status", label: "Listed as", options: [["", withStatus], ...statusOptions] },
];

const fieldOf = { CATEGORY_NOT_FOUND: "categoryId", INSUFFICIENT_STOCK: "status" } as const;

function CreatePet({ onClose }: { readonly onClose: () => void }) {
  const underKey = useKeys();
  async function submit(values: Values): Promise<void> {
    const wanted = await petOf(values);
    const pet = await underKey(wanted, (idempotencyKey) => petstore.pets.create(wanted, { idempotencyKey }));
    written("pet", pet);
    notify(`${pet.name} is in the shop as pet ${pet.id}.`);
  }
  const fields = fieldsWith("available");
  return <RecordForm title="New pet" submitLabel="Create pet" {...{ fields, fieldOf, submit, onClose }} />;
}

interface PetProps {
  readonly pet: Pet;
  readonly onClose: () => void;
}

function EditPet({ pet, onClose }: PetProps) {
  const category = useMemo(() => ({ id: pet.categoryId, name: nameOf("category", pet.categoryId) ?? "" }), []);
  async function submit(values: Values, etag: string): Promise<void> {
    written("pet", await petstore.pets.replace(pet.id, await petOf(values, category), { ifMatch: etag }));
    notify(`Pet ${pet.id} is changed.`);
  }
  async function theirs(): Promise<Theirs | undefined> {
    const now = await petstore.pets.get(pet.id);
    return { values: valuesOf(now), etag: now.etag };
  }
  const fields = fieldsWith(`as it is (${statusWord(pet.status)})`);
  const title = `Edit pet ${pet.id}`;
  return (
    <RecordForm
      submitLabel="Save"
      initial={valuesOf(pet)}
      etag={pet.etag}
      {...{ title, fields, fieldOf, submit, theirs, onClose }}
    />
  );
}

function DeletePet({ pet, onClose }: PetProps) {
  async function run(): Promise<void> {
    await unlessGone(petstore.pets.delete(pet.id, { ifMatch: pet.etag }), "PET_NOT_FOUND");
    written("pet", pet, true);
    notify(`${pet.name} is deleted.`);
  }
  return (
    <Confirm title={`Delete ${pet.name}`} action="Delete" run={run} onClose={onClose}>
      <p>{pet.name} leaves the shop, and its stock with it. Complete orders for it stay.</p>
    </Confirm>
  );
}

const valuesOf = ({ name, categoryId }: Pet): Values => ({
  name,
  categoryId: labelOf("category", categoryId),
  status: "",
});

/** Without what was left empty: the petstore says what is missing. */
const petOf = async ({ name = "", categoryId = "", status = "" }: Values, category?: NamedRecord): Promise<NewPet> =>
  ({
    ...(name !== "" && { name }),
    ...(categoryId.trim() !== "" && { categoryId: await idMeant("category", "categoryId", categoryId, category) }),
    status: statusOf(status),
  }) as NewPet;
