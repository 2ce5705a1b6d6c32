import type { Category, NewCategory } from "@petstore/client";
import { Confirm } from "../parts/dialog.tsx";
import { Filters, IdFilter, idIn, NameFilter } from "../parts/filters.tsx";
import { editing, type FieldSpec, RecordForm, type Values } from "../parts/form.tsx";
import { useKeys } from "../parts/idempotency-key.ts";
import { ListView, useDialog, usePagedList } from "../parts/list-view.tsx";
import { Name } from "../parts/words.tsx";
import { petstore } from "../petstore.ts";
import { unlessGone, written } from "../records/changes.ts";
import { hrefOf } from "../route.ts";

export function Categories() {
  const { dialog, show, onClose } = useDialog();
  const create = () => show(<CreateCategory onClose={onClose} />);
  const list = usePagedList<"category">((query) => {
    const id = idIn(query, "id");
    return {
      kind: "category",
      matches: (category) => id === undefined || category.id === id,
      key: "id",
      list: (page, options) => petstore.categories.list({ ...page, id }, options),
    };
  });
  return (
    <ListView
      dialog={dialog}
      title="Categories"
      intro="The kinds of pets that the shop has. One that has pets can't be deleted."
      list={list}
      create={{ label: "New category", onClick: create }}
      columns={[
        { label: "ID", cell: ({ id }) => `${id}`, isNumber: true },
        { label: "Name", isHead: true, cell: ({ name }) => <Name>{name}</Name> },
        {
          label: "Description",
          cell: ({ description }) =>
            description === undefined ? <span class="quiet">none</span> : <Name>{description}</Name>,
        },
      ]}
      actions={(category) => (
        <>
          <a class="button" href={hrefOf("pets", { category: `${category.id}` })}>
            Pets<span class="unseen"> in {category.name}</span>
          </a>
          <button type="button" onClick={() => show(<EditCategory {...{ category, onClose }} />)}>
            Edit<span class="unseen"> {category.name}</span>
          </button>
          <button type="button" onClick={() => show(<DeleteCategory {...{ category, onClose }} />)}>
            Delete<span class="unseen"> {category.name}</span>
          </button>
        </>
      )}
      filters={
        <Filters search={<NameFilter />}>
          <IdFilter name="id" label="ID" />
        </Filters>
      }
      empty={{
        all: "There are no categories yet, such as dogs or cats.",
        filtered: "No category matches.",
        step: (
          <button type="button" class="primary" onClick={create}>
            Create the first category
          </button>
        ),
      }}
    />
  );
}

const fields: readonly FieldSpec[] = [
  { name: "name", label: "Name", missing: "Give the category a name." },
  { name: "description", label: "Description", kind: "lines", hint: "May be left empty." },
];

export function CreateCategory({ onClose }: { readonly onClose: () => void }) {
  const underKey = useKeys();
  async function submit(values: Values): Promise<void> {
    const wanted = categoryOf(values);
    const category = await underKey(wanted, (idempotencyKey) => petstore.categories.create(wanted, { idempotencyKey }));
    written("category", category, `${category.name} is category ${category.id}.`);
  }
  return <RecordForm title="New category" submitLabel="Create category" {...{ fields, submit, onClose }} />;
}

interface CategoryProps {
  readonly category: Category;
  readonly onClose: () => void;
}

function EditCategory({ category: before, onClose }: CategoryProps) {
  async function submit(values: Values, etag: string): Promise<void> {
    const category = await petstore.categories.replace(before.id, categoryOf(values), { ifMatch: etag });
    written("category", category, `Category ${category.id} is changed.`);
  }
  const title = `Edit category ${before.id}`;
  const edited = editing(before, valuesOf, () => petstore.categories.get(before.id));
  return <RecordForm submitLabel="Save" {...{ title, fields, submit, onClose, ...edited }} />;
}

function DeleteCategory({ category, onClose }: CategoryProps) {
  async function run(): Promise<void> {
    await unlessGone(petstore.categories.delete(category.id, { ifMatch: category.etag }), "CATEGORY_NOT_FOUND");
    written("category", category, `${category.name} is deleted.`, true);
  }
  return (
    <Confirm title={`Delete ${category.name}`} action="Delete" run={run} onClose={onClose}>
      <p>It can only be deleted while no pet belongs to it.</p>
    </Confirm>
  );
}

const valuesOf = ({ name, description = "" }: Category): Values => ({ name, description });

/** Without what was left empty: the petstore says what is missing. */
const categoryOf = ({ name = "", description = "" }: Values): NewCategory =>
  ({
    ...(name !== "" && { name }),
    ...(description !== "" && { description }),
  }) as NewCategory;
