/** How the memory for requests is shared out, without a network: requests and responses are stood in for. */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import {
  countBody,
  FIELD_BYTES,
  growRequest,
  isRefused,
  limitRequestMemory,
  PIECE_BYTES,
  REQUEST_BYTES,
  WORK_BYTES,
  whileWorking,
} from "./request-memory.ts";

const ONE = REQUEST_BYTES + WORK_BYTES;

function limited(requests: number) {
  const memory = limitRequestMemory(requests * ONE);
  const connect = (address = "192.0.2.1") => {
    const open = new Set<EventEmitter>();
    const connection = {
      address,
      isOpen: true,
      giveUp() {
        connection.isOpen = false;
      },
      /** What was asked hears of the end of its connection. */
      ended: () => open.forEach((response) => void response.emit("close")),
      ask(...rawHeaders: string[]) {
        const request = { rawHeaders, push: () => true } as unknown as IncomingMessage;
        const response = new EventEmitter();
        open.add(response);
        memory.hold(connection, request, response as unknown as ServerResponse);
        countBody(request);
        return { request, close: () => void response.emit("close"), isRefused: isRefused(request) };
      },
      /** How many requests are taken before one is refused. */
      takes(most: number) {
        for (let taken = 0; taken < most; taken++) if (connection.ask().isRefused) return taken;
        return most;
      },
    };
    return connection;
  };
  return { ...memory, connect };
}

test("an address may hold as much as it leaves free, over however many connections, and an even part in any case", () => {
  const { connect } = limited(121);
  // Those who have gone take no part.
  for (let i = 0; i < 10; i++) connect(`198.51.100.${i}`).ask().close();
  expect(connect().takes(40)).toBe(40);
  expect(connect().takes(100)).toBe(20);
  expect(connect("192.0.2.2").takes(100)).toBe(40);
});

test("there is room for one more, however many were greedy before", () => {
  const { connect, held } = limited(100);
  const greedy = Array.from({ length: 40 }, (_, i) => connect(`192.0.2.${i}`));
  for (const connection of greedy) {
    connection.takes(100);
    for (const each of greedy) if (!each.isOpen) each.ended();
  }
  expect(connect("198.51.100.1").ask().isRefused).toBe(false);
  expect(held()).toBeLessThanOrEqual(100 * ONE);
});

test("a request counts until it is closed, and the work for it is done", async () => {
  const { connect, held } = limited(10);
  const { request, close } = connect().ask();
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = whileWorking(request, () => promise);
  expect(held()).toBe(ONE);
  close();
  expect(held()).toBe(ONE);
  resolve();
  await done;
  expect(held()).toBe(0);
  growRequest(request, 1000);
  expect(held()).toBe(0);
});

test("a request for which nothing is done any more counts until it is closed", async () => {
  const { connect, held } = limited(10);
  const { request, close } = connect().ask();
  await whileWorking(request, () => {});
  expect(held()).toBe(ONE);
  close();
  expect(held()).toBe(0);
});

test("header fields count by their text and their number, bodies by their bytes and pieces", () => {
  const { connect, held } = limited(10);
  const { request } = connect().ask("name", "value");
  expect(held()).toBe(ONE + 2 * 9 + FIELD_BYTES);
  request.push(Buffer.alloc(1));
  expect(held()).toBe(ONE + 2 * 10 + FIELD_BYTES + PIECE_BYTES);
  growRequest(request, 1000);
  expect(held()).toBe(ONE + 2 * 10 + FIELD_BYTES + PIECE_BYTES + 1000);
});

test("a refused request costs less, and is counted as long as it is open", () => {
  const { connect, held } = limited(2);
  const connection = connect();
  expect(connection.takes(10)).toBe(1);
  expect(held()).toBe(ONE + REQUEST_BYTES);
  connection.ended();
  expect(held()).toBe(0);
  expect(connection.ask().isRefused).toBe(false);
});

test("when refused requests or bodies take too much, the address with the most loses its largest connection, alone", () => {
  const { connect, held } = limited(30);
  const [other, small, large] = [connect("192.0.2.2"), connect(), connect()];
  const [one, two] = [other.ask(), small.ask()];
  large.takes(20);
  const states = () => [other, small, large].map(({ isOpen }) => isOpen);
  for (let i = 0; i < 15; i++) large.ask();
  expect(states()).toEqual([true, true, true]);
  for (let i = 0; i < 15; i++) large.ask();
  expect(states()).toEqual([true, true, false]);
  // What it held goes at the next occasion, and until then nobody else is closed for it.
  for (const { request } of [one, two]) request.push(Buffer.alloc(1000));
  expect(states()).toEqual([true, true, false]);
  large.ended();
  for (const { close } of [one, two]) close();
  expect(held()).toBe(0);
});

test("what is still done for a closed connection counts for its address", async () => {
  const { connect } = limited(4);
  const { request, close } = connect().ask();
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = whileWorking(request, () => promise);
  connect().ask();
  close();
  const refused = connect().ask();
  expect(refused.isRefused).toBe(true);
  refused.close();
  resolve();
  await done;
  expect(connect().ask().isRefused).toBe(false);
});
