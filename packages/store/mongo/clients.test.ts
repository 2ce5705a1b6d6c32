import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { followMembers } from "./clients.ts";

type Server = readonly [type: string, hosts: number];

/** What is known of the members after each that was heard of the servers. */
function heard(...all: readonly (readonly Server[])[]): boolean[] {
  const client = new EventEmitter();
  const hasSeveral = followMembers(client as never);
  return all.map((servers) => {
    const described = servers.map(([type, hosts], i) => [`host-${i}`, { type, allHosts: Array(hosts).fill("host") }]);
    client.emit("topologyDescriptionChanged", { newDescription: { servers: new Map(described as never) } });
    return hasSeveral();
  });
}

test.each<[string, readonly Server[], boolean]>([
  ["a replica set of one", [["RSPrimary", 1]], false],
  ["a replica set of three of which one is known", [["RSSecondary", 3]], true],
  ["a router", [["Mongos", 0]], true],
  ["a load balancer, which names nobody", [["LoadBalancer", 0]], true],
  ["a member that is in no set yet", [["RSGhost", 0]], true],
  ["one that was not reached", [["Unknown", 0]], true],
])("%s", (_, servers, several) => {
  expect(heard(servers)).toEqual([several]);
});

test("who says nothing leaves what was known", () => {
  expect(heard([["RSPrimary", 1]], [["Unknown", 0]], [["RSGhost", 0]])).toEqual([false, false, false]);
  expect(heard([["RSPrimary", 1]], [["RSPrimary", 2]])).toEqual([false, true]);
});
