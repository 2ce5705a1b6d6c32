/** `npm run certs`, as its caller sees it. What it makes is used by `launcher/tls.process.test.ts`. */
import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";

let dir: string;
beforeEach(async () => {
  const parent = await mkdtemp(join(tmpdir(), "certs-"));
  onTestFinished(() => rm(parent, { recursive: true }));
  dir = join(parent, "certs");
});

const certs = (...options: string[]) =>
  new Promise<{ code: unknown; said: string }>((resolve) =>
    execFile(process.execPath, ["scripts/certs.ts", "--dir", dir, ...options], (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, said: stdout + stderr }),
    ),
  );
const certificate = async (file: string) => new X509Certificate(await readFile(join(dir, file)));

test("makes a pair for this machine, the names that are asked for and own processes, and says what to do", async () => {
  const { code, said } = await certs("--names", "shop.test, 10.0.0.7");
  expect(code).toBe(0);
  expect(said).toContain(`curl --cacert ${dir}/ca.pem https://127.0.0.1:8080/pets`);
  const [ca, cert] = [await certificate("ca.pem"), await certificate("cert.pem")];
  expect(cert.verify(ca.publicKey)).toBe(true);
  expect([ca.ca, cert.ca]).toEqual([true, false]);
  for (const name of ["localhost", "shop.test"]) expect(cert.checkHost(name)).toBe(name);
  for (const address of ["127.0.0.1", "10.0.0.7"]) expect(cert.checkIP(address)).toBe(address);
  expect(cert.subjectAltName).toContain("URI:spiffe://petstore/process");
});

test("only its owner can read the key, and there is no key of the authority", async () => {
  await certs();
  expect((await readdir(dir)).sort()).toEqual(["ca.pem", "cert.pem", "key.pem"]);
  expect((await stat(join(dir, "key.pem"))).mode & 0o777).toBe(0o600);
  expect(await readFile(join(dir, "ca.pem"), "utf8")).not.toContain("PRIVATE KEY");
});

test("replaces nothing unless it is told to", async () => {
  await certs();
  const before = await readFile(join(dir, "cert.pem"), "utf8");
  expect(await certs()).toEqual({ code: 1, said: `${dir}/ca.pem is there already. \`--force\` makes others.\n` });
  expect(await readFile(join(dir, "cert.pem"), "utf8")).toBe(before);
  expect((await certs("--force")).code).toBe(0);
  expect(await readFile(join(dir, "cert.pem"), "utf8")).not.toBe(before);
});

test("an option that there is not is told with those that there are", async () => {
  const { code, said } = await certs("--days", "3");
  expect(code).toBe(1);
  expect(said).toMatch(/--days[\s\S]*--names[\s\S]*--force/);
});
