/** Which hosts are answered to, and whose request it is. */
import { once } from "node:events";
import { request as http1Request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { readEnvironment, withDefault } from "@petstore/runtime/environment";
import { describe, expect, onTestFinished, test } from "vitest";
import { proxies } from "../../../processes/config.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import { callerAddress, callerNetwork, createHostCheck } from "./hosts.ts";

const refusal = (host: string | undefined, allowed: readonly string[] = []) =>
  createHostCheck(allowed)({ headers: { host } });

test("who was let in before lets in nobody else", () => {
  const check = createHostCheck(["petstore.test"]);
  const refused = ["localhost", "evil.example", "petstore.test:8080", "evil.example", "petstore.test.evil.example"];
  expect(refused.filter((host) => check({ headers: { host } }))).toEqual(
    refused.filter((host) => host.includes("evil")),
  );
});

test.each([
  "localhost",
  "localhost:8080",
  "LOCALHOST.",
  "shop.localhost:8080",
  "a.b.LocalHost.",
  "127.0.0.1:1",
  "127.1.2.3",
  "[::1]:8080",
  "[::ffff:127.0.0.1]",
])("%s is this machine", (host) => {
  expect(refusal(host)).toBeUndefined();
});

test.each([
  "evil.example",
  "evil.example:8080",
  "localhost.evil.example",
  "127.0.0.1.evil.example",
  "evil-localhost",
  "localhost.com",
  "10.0.0.1",
  "0.0.0.0",
  "[::]",
  "[::ffff:10.0.0.1]",
])("%s is not", (host) => {
  expect(refusal(host)).toMatch(/^this server does not answer to .* ALLOWED_HOSTS\.$/);
});

test("names and addresses that are allowed are compared as URLs compare them", () => {
  const allowed = ["Shop.Example", "10.0.0.7", "2001:DB8:0::7"];
  for (const host of ["shop.example:80", "SHOP.example.", "10.0.0.7:8080", "[2001:db8::7]", "localhost"])
    expect(refusal(host, allowed)).toBeUndefined();
  for (const host of ["a.shop.example", "shop.example.evil", "10.0.0.8"])
    expect(refusal(host, allowed)).toContain("ALLOWED_HOSTS");
});

test("HTTP/2 names it in :authority; HTTP/1.0, which no browser speaks, may name none", () => {
  const check = createHostCheck([]);
  expect(check({ headers: { ":authority": "evil.example" } })).toContain("evil.example");
  expect(check({ headers: { ":authority": "localhost:1" } })).toBeUndefined();
  expect(check({ headers: {} })).toBeUndefined();
});

test("a refusal repeats little of what was sent", () => {
  expect(refusal(`${"a".repeat(60)}.`.repeat(10))?.length).toBeLessThan(300);
});

describe("a server that answers to loopback alone", () => {
  async function started() {
    const served: string[] = [];
    const server = await startOnePort(
      (request, response) => {
        served.push(`${request.headers[":authority"] ?? request.headers.host}`);
        response.end("served");
      },
      {},
      { checkHost: createHostCheck([]), knowsPeer: ({ headers }) => headers.secret === "ours" },
    );
    return { ...server, served };
  }

  test("refuses other names over HTTP/1.1, and says what to do", async () => {
    const { port, served } = await started();
    const ask = async (headers: Record<string, string>) => {
      const [answer] = await once(http1Request({ port, host: "127.0.0.1", headers }).end(), "response");
      expect(answer.headers["x-content-type-options"]).toBe("nosniff");
      return `${answer.statusCode} ${await text(answer)}`;
    };
    expect(await ask({ host: "evil.example" })).toMatch(/^421 Host: .*evil\.example.*ALLOWED_HOSTS/);
    expect(served).toEqual([]);
    expect(await ask({ host: `localhost:${port}` })).toBe("200 served");
    expect(await ask({ host: "pet.internal", secret: "ours" })).toBe("200 served");
    expect(await ask({ host: "evil.example", secret: "guess" })).toMatch(/^421 /);
    expect(served).toEqual([`localhost:${port}`, "pet.internal"]);
  });

  test("goes by the target where it names a host, whatever Host says", async () => {
    const { port, served } = await started();
    const ask = async (target: string, host: string) => {
      const [answer] = await once(
        http1Request({ port, host: "127.0.0.1", path: target, headers: { host } }).end(),
        "response",
      );
      answer.resume();
      return answer.statusCode;
    };
    expect(await ask("http://evil.example/pets", "localhost")).toBe(421);
    expect(await ask("HTTP://evil.example", "localhost")).toBe(421);
    expect(await ask("http://localhost@evil.example/", "localhost")).toBe(400);
    expect(await ask("http:///pets", "localhost")).toBe(400);
    expect(await ask("http://localhost/pets", "a/b")).toBe(400);
    expect(await ask("/http://evil.example/", "localhost")).toBe(200);
    expect(await ask(`http://localhost:${port}/pets`, "evil.example")).toBe(200);
    expect(served).toEqual(["localhost", `localhost:${port}`]);
  });

  test("refuses other names over HTTP/2", async () => {
    const { url, served } = await started();
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    const ask = async (authority: string) => {
      const [headers] = await once(session.request({ ":authority": authority }).resume(), "response");
      return headers[":status"];
    };
    expect(await ask("evil.example:80")).toBe(421);
    expect(await ask("localhost")).toBe(200);
    expect(await ask("::1:8080")).toBe(200);
    expect(await ask("fd00::2:8080")).toBe(421);
    expect(served).toEqual(["localhost", "[::1]:8080"]);
  });
});

describe("the address of a caller", () => {
  const PROXY = "10.0.0.1";
  const read = (text: string) => readEnvironment({ P: text }, { P: withDefault(proxies, []) }).P;
  const of = (trusted: string[], remoteAddress: string, headers: Record<string, string> = {}) =>
    callerAddress(read(trusted.join()))({ headers, socket: { remoteAddress } });
  const behind = (headers: Record<string, string>) => of(["10.0.0.0/8", "2001:db8:1::/48"], PROXY, headers);

  test("without proxies it is the other end of the connection, whatever the headers say", () => {
    const headers = { forwarded: "for=192.0.2.1", "x-forwarded-for": "192.0.2.1" };
    expect(of([], "198.51.100.7", headers)).toBe("198.51.100.7");
    expect(of([PROXY], "198.51.100.7", headers)).toBe("198.51.100.7");
  });

  describe("behind a trusted proxy it is", () => {
    test.each<[string, Record<string, string>, string]>([
      ["the one that the proxy names", { "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
      ["the same in the standard's field", { forwarded: "for=192.0.2.1;proto=https" }, "192.0.2.1"],
      ["with a port", { forwarded: 'for="192.0.2.1:4711"' }, "192.0.2.1"],
      ["the last that no trusted proxy has", { "x-forwarded-for": "1.1.1.1, 192.0.2.1, 10.9.9.9" }, "192.0.2.1"],
      ["so also in the standard's field", { forwarded: "for=1.1.1.1, for=192.0.2.1, for=10.9.9.9" }, "192.0.2.1"],
      ["a network of IPv6", { forwarded: 'for="[2001:db8:cafe:7::17]:4711"' }, "2001:db8:cafe:7::/64"],
      ["itself, when it names nobody", {}, PROXY],
      ["itself, when it hides who it was", { forwarded: "for=_hidden" }, PROXY],
      ["itself, when the field is no list of hops", { forwarded: "for=192.0.2.1;;=" }, PROXY],
      [
        "itself, when two fields differ: a caller may have sent one",
        { forwarded: "for=1.1.1.1", "x-forwarded-for": "192.0.2.1" },
        PROXY,
      ],
      ["the one in both fields", { forwarded: "for=192.0.2.1", "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
      ["the last proxy of too many", { "x-forwarded-for": `192.0.2.1${", 10.1.1.1".repeat(40)}` }, "10.1.1.1"],
    ])("%s", (_, headers, expected) => expect(behind(headers)).toBe(expected));
  });

  test.each([
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8::9", "2001:db8:0:0::/64"],
  ])("%s counts as %s", (peer, expected) => expect(of([], peer)).toBe(expected));
});

describe("the network of an address", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:0:0:1:2:3:4", "2001:db8:0:0::/64"],
    ["2001:0DB8::9", "2001:db8:0:0::/64"],
    ["2001:db8::9", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["64:ff9b::192.0.2.33", "64:ff9b:0:0::/64"],
    [undefined, ""],
  ])("%s counts as %s", (address, expected) => expect(callerNetwork(address)).toBe(expected));
});
