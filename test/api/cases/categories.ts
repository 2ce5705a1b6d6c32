/** Categories. */

import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { call, rule } from "./case.ts";

const { createCategory, getCategory, updateCategory, deleteCategory } = CategoryService.method;
const { updatePet } = PetService.method;

export const categories = [
  rule("POST: 201 with the record, Location and ETag", {
    http: { method: "POST", path: "/categories", body: { name: "dog", description: "barks" } },
    rpc: call(createCategory, { category: { name: "dog", description: "barks" } }),
    answers: () => ({
      http: {
        status: 201,
        headers: { location: expect.stringMatching(/^\/categories\/[1-9]\d*$/), etag: '"1"' },
        body: { id: expect.any(Number), name: "dog", description: "barks" },
      },
      rpc: {
        message: {
          category: { id: expect.stringMatching(/^[1-9]\d*$/), name: "dog", description: "barks", etag: '"1"' },
        },
      },
    }),
  }),
  rule("POST: a description that was not given is absent", {
    http: { method: "POST", path: "/categories", body: { name: "dog" } },
    rpc: call(createCategory, { category: { name: "dog" } }),
    answers: () => ({
      http: { status: 201, body: { id: expect.any(Number), name: "dog" } },
      rpc: { message: { category: { id: expect.any(String), name: "dog", etag: '"1"' } } },
    }),
  }),
  rule("POST: an empty description is one", {
    http: { method: "POST", path: "/categories", body: { name: "dog", description: "" } },
    rpc: call(createCategory, { category: { name: "dog", description: "" } }),
    answers: () => ({
      http: { status: 201, body: { id: expect.any(Number), name: "dog", description: "" } },
      rpc: { message: { category: { id: expect.any(String), name: "dog", description: "", etag: '"1"' } } },
    }),
  }),
  rule("GET: the record and its ETag", {
    given: (shop) => shop.category({ name: "cat" }),
    http: ({ id }) => ({ method: "GET", path: `/categories/${id}` }),
    rpc: ({ id }) => call(getCategory, { categoryId: id }),
    answers: ({ id, etag }) => ({
      http: { status: 200, headers: { etag, deprecation: null, sunset: null }, body: { id: Number(id), name: "cat" } },
      rpc: { message: { category: { id: `${id}`, name: "cat", etag } } },
    }),
  }),
  rule("GET: 404 for one that is not there", {
    http: { method: "GET", path: "/categories/9007199254740991" },
    rpc: call(getCategory, { categoryId: 9007199254740991n }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND", says: "9007199254740991" },
  }),
  rule("PUT: replaces the record, an absent description is removed", {
    given: (shop) => shop.category({ name: "dog", description: "barks" }),
    http: ({ id }) => ({ method: "PUT", path: `/categories/${id}`, body: { name: "wolf" } }),
    rpc: ({ id }) => call(updateCategory, { categoryId: id, category: { name: "wolf" } }),
    answers: ({ id }) => ({
      http: { status: 200, headers: { etag: '"2"' }, body: { id: Number(id), name: "wolf" } },
      rpc: { message: { category: { id: `${id}`, name: "wolf", etag: '"2"' } } },
    }),
  }),
  rule("PATCH: what is absent stays", {
    given: (shop) => shop.category({ name: "dog", description: "barks" }),
    http: ({ id }) => ({ method: "PATCH", path: `/categories/${id}`, body: { name: "wolf" } }),
    rpc: ({ id }) =>
      call(updateCategory, { categoryId: id, category: { name: "wolf" }, updateMask: { paths: ["name"] } }),
    answers: ({ id }) => ({
      http: { status: 200, headers: { etag: '"2"' }, body: { id: Number(id), name: "wolf", description: "barks" } },
      rpc: { message: { category: { id: `${id}`, name: "wolf", description: "barks", etag: '"2"' } } },
    }),
  }),
  rule("PATCH: null removes an optional member; a mask names what is removed", {
    given: (shop) => shop.category({ name: "dog", description: "barks" }),
    http: ({ id }) => ({ method: "PATCH", path: `/categories/${id}`, body: { description: null } }),
    rpc: ({ id }) => call(updateCategory, { categoryId: id, category: {}, updateMask: { paths: ["description"] } }),
    answers: ({ id }) => ({
      http: { status: 200, body: { id: Number(id), name: "dog" } },
      rpc: { message: { category: { id: `${id}`, name: "dog", etag: '"2"' } } },
    }),
  }),
  rule("PATCH: {} changes nothing, and so does an empty mask", {
    given: (shop) => shop.category({ name: "dog", description: "barks" }),
    http: ({ id }) => ({ method: "PATCH", path: `/categories/${id}`, body: {} }),
    rpc: ({ id }) => call(updateCategory, { categoryId: id, category: { name: "wolf" }, updateMask: { paths: [] } }),
    answers: ({ id }) => ({
      http: { status: 200, headers: { etag: '"1"' }, body: { id: Number(id), name: "dog", description: "barks" } },
      rpc: { message: { category: { id: `${id}`, name: "dog", description: "barks", etag: '"1"' } } },
    }),
  }),
  rule("PATCH: null for a member that is required", {
    given: (shop) => shop.category(),
    http: ({ id }) => ({ method: "PATCH", path: `/categories/${id}`, body: { name: null } }),
    rpc: ({ id }) => call(updateCategory, { categoryId: id, category: {}, updateMask: { paths: ["name"] } }),
    fails: { http: "400 VALIDATION_FAILED", rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says: "name" },
  }),
  rule("PUT: null is no value", {
    given: (shop) => shop.category(),
    http: ({ id }) => ({ method: "PUT", path: `/categories/${id}`, body: { name: "dog", description: null } }),
    oneEndpoint: "protobuf messages hold no null",
    fails: { http: "400 VALIDATION_FAILED", says: "description" },
  }),
  rule("PUT: 404 for one that is not there", {
    http: { method: "PUT", path: "/categories/0", body: { name: "dog" } },
    rpc: call(updateCategory, { categoryId: 0n, category: { name: "dog" } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  }),
  rule("PATCH: 404 for one that is not there", {
    http: { method: "PATCH", path: "/categories/-1", body: { name: "dog" } },
    rpc: call(updateCategory, { categoryId: -1n, category: { name: "dog" }, updateMask: { paths: ["name"] } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  }),
  rule("DELETE: 204 without a body, then it is gone", {
    given: (shop) => shop.category(),
    http: ({ id }) => ({ method: "DELETE", path: `/categories/${id}` }),
    rpc: ({ id }) => call(deleteCategory, { categoryId: id }),
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
    afterwards: async ({ categories }, { id }) =>
      expect((await categories.batchGetCategories({ categoryId: [id] })).categories).toEqual([]),
  }),
  rule("DELETE: 404 the second time", {
    given: async (shop) => {
      const category = await shop.category();
      await shop.categories.deleteCategory({ categoryId: category.id });
      return category;
    },
    http: ({ id }) => ({ method: "DELETE", path: `/categories/${id}` }),
    rpc: ({ id }) => call(deleteCategory, { categoryId: id }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  }),
  rule("DELETE: 409 while any pet belongs to it", {
    given: (shop) => shop.pet(),
    http: ({ categoryId }) => ({ method: "DELETE", path: `/categories/${categoryId}` }),
    rpc: ({ categoryId }) => call(deleteCategory, { categoryId }),
    fails: { http: "409 CATEGORY_IN_USE", rpc: "FAILED_PRECONDITION CATEGORY_IN_USE" },
    afterwards: async (shop, { categoryId }) => void (await shop.pet({ categoryId })), // and pets may still join it
  }),
  rule("DELETE: no longer in use once its pets have moved or gone", {
    given: async (shop) => {
      const [moved, gone] = [await shop.pet(), await shop.category()];
      const other = await shop.pet({ categoryId: moved.categoryId });
      await shop.pets.updatePet({ petId: moved.id, pet: { name: "Rex", categoryId: gone.id } });
      await shop.pets.deletePet({ petId: other.id });
      return moved;
    },
    http: ({ categoryId }) => ({ method: "DELETE", path: `/categories/${categoryId}` }),
    rpc: ({ categoryId }) => call(deleteCategory, { categoryId }),
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
  }),
  rule("DELETE: no pet may point at a category that is gone", {
    given: async (shop) => {
      const category = await shop.category();
      await shop.categories.deleteCategory({ categoryId: category.id });
      return { category, pet: await shop.pet() };
    },
    http: ({ category, pet }) => ({
      method: "PATCH",
      path: `/pets/${pet.id}`,
      body: { categoryId: Number(category.id) },
    }),
    rpc: ({ category, pet }) =>
      call(updatePet, { petId: pet.id, pet: { categoryId: category.id }, updateMask: { paths: ["category_id"] } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND", says: "categor" },
  }),
];
