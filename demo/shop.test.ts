import { expect, test } from "vitest";
import { ASSORTMENTS } from "./catalogue.ts";
import { MAX_PETS, missingFrom, planShop } from "./shop.ts";

test("the same seed draws the same shop, another seed another", () => {
  expect(planShop(7, 300)).toEqual(planShop(7, 300));
  expect(planShop(7, 300)).not.toEqual(planShop(8, 300));
});

test("more pets are added to those that a smaller shop has", () => {
  expect(planShop(7, 300).slice(0, 100)).toEqual(planShop(7, 100));
});

test("no two pets have one name, however many there are", () => {
  const all = planShop(7, MAX_PETS);
  expect(all).toHaveLength(MAX_PETS);
  expect(new Set(all.map(({ name }) => name)).size).toBe(MAX_PETS);
  expect(all.every(({ name }) => name.length <= 200)).toBe(true);
});

test("it has something of everything", () => {
  const shop = planShop(7, 300);
  expect(new Set(shop.map(({ category }) => category)).size).toBe(ASSORTMENTS.length);
  const listed = Object.groupBy(shop, ({ listing }) => listing);
  expect(listed.available?.length).toBeGreaterThan(240);
  expect(listed.pending?.length).toBeGreaterThan(5);
  expect(listed.sold?.length).toBeGreaterThan(5);
  const orders = shop.flatMap((pet) => pet.orders);
  expect(orders.filter(({ complete }) => complete).length).toBeGreaterThan(100);
  expect(orders.filter(({ complete }) => !complete).length).toBeGreaterThan(50);
});

test("what is ordered is in stock, and for sale", () => {
  for (const { listing, stock, orders } of planShop(7, MAX_PETS)) {
    expect(orders.reduce((sum, { quantity }) => sum + quantity, 0)).toBeLessThanOrEqual(stock);
    if (listing !== "available") expect(orders).toEqual([]);
  }
});

test("only what is not there is missing", () => {
  const shop = planShop(7, 3);
  expect(missingFrom(new Set(), shop)).toEqual(shop);
  expect(missingFrom(new Set([shop[1]?.name ?? ""]), shop)).toEqual([shop[0], shop[2]]);
  expect(missingFrom(new Set(shop.map(({ name }) => name)), shop)).toEqual([]);
});
