import type { NewPet, Pet } from "@petstore/client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Confirm } from "../parts/dialog.tsx";
import { Choice, Filters, IdFilter, idIn, NameFilter } from "../parts/filters.tsx";
import { editing, type FieldSpec, RecordForm, type Values } from "../parts/form.tsx";
import { useKeys } from "../parts/idempotency-key.ts";
import { ListView, useDialog, usePagedList } from "../parts/list-view.tsx";
import { Name, Status, statusOf, statusOptions, statusWord } from "../parts/words.tsx";
import { petstore } from "../petstore.ts";
import { unlessGone, written } from "../records/changes.ts";
import type { NamedRecord } from "../records/listing.ts";
import { idMeant, labelOf, nameOf } from "../records/names.ts";
import { firstPage } from "../records/paged-list.ts";
import { hrefOf } from "../route.ts";
import { CreateCategory } from "./categories.tsx";
import { OrderForm } from "./order-form.tsx";

export function Pets() {
  const { dialog, show, onClose } = useDialog();
  const create = () => show(<CreatePet onClose={onClose} />);
  const createCategory = () => show(<CreateCategory onClose={onClose} />);
  const list = usePagedList<"pet">((query) => {
    const status = statusOf(query.get("status"));
    const categoryId = idIn(query, "category");
    const id = idIn(query, "id");
    return {
      kind: "pet",
      matches: (pet) =>
        (status === undefined || pet.status === status) &&
        (categoryId === undefined || pet.categoryId === categoryId) &&
        (id === undefined || pet.id === id),
      key: "id",
      list: (page, options) => petstore.pets.list({ ...page, status, categoryId, id }, options),
    };
  });
  return (
    <ListView
      dialog={dialog}
      title="Pets"
      intro="What the shop sells and has sold. The status follows the stock and the orders."
      list={list}
      create={{ label: "New pet", onClick: create }}
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
            <button type="button" onClick={() => show(<OrderForm {...{ pet, onClose }} />)}>
              Order<span class="unseen"> {pet.name}</span>
            </button>
          )}
          <a class="button" href={hrefOf("orders", { pet: `${pet.id}` })}>
            See orders<span class="unseen"> for {pet.name}</span>
          </a>
          <button type="button" onClick={() => show(<EditPet {...{ pet, onClose }} />)}>
            Edit<span class="unseen"> {pet.name}</span>
          </button>
          <button type="button" onClick={() => show(<DeletePet {...{ pet, onClose }} />)}>
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
        step: <FirstSteps isBehind={dialog !== undefined} {...{ create, createCategory }} />,
      }}
    />
  );
}

interface FirstStepsProps {
  /** Whether a dialog is open, which may create what is missing. */
  readonly isBehind: boolean;
  readonly create: () => void;
  readonly createCategory: () => void;
}

/** The next one of them stands out. */
function FirstSteps({ isBehind, create, createCategory }: FirstStepsProps) {
  const [next, setNext] = useState("");
  useEffect(() => {
    const read = async () => {
      const { items } = await firstPage(petstore.categories.list({ limit: 1 }));
      setNext(items.length > 0 ? "pet" : "category");
    };
    read().catch(() => {}); // without an answer none does
  }, [isBehind]);
  return (
    <>
      <button type="button" class={next === "category" ? "primary" : ""} onClick={createCategory}>
        Create a category
      </button>
      <button type="button" class={next === "pet" ? "primary" : ""} onClick={create}>
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
    written("pet", pet, `${pet.name} is in the shop as pet ${pet.id}.`);
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
    written(
      "pet",
      await petstore.pets.replace(pet.id, await petOf(values, category), { ifMatch: etag }),
      `Pet ${pet.id} is changed.`,
    );
  }
  const fields = fieldsWith(`as it is (${statusWord(pet.status)})`);
  const title = `Edit pet ${pet.id}`;
  const edited = editing(pet, valuesOf, () => petstore.pets.get(pet.id));
  return <RecordForm submitLabel="Save" {...{ title, fields, fieldOf, submit, onClose, ...edited }} />;
}

function DeletePet({ pet, onClose }: PetProps) {
  async function run(): Promise<void> {
    await unlessGone(petstore.pets.delete(pet.id, { ifMatch: pet.etag }), "PET_NOT_FOUND");
    written("pet", pet, `${pet.name} is deleted.`, true);
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
