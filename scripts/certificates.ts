/** A private certificate authority and the certificates that it issues, for development and for tests. */
import "reflect-metadata"; // required by @peculiar/x509
import { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

/** A certificate and its key, as PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface Issued {
  /** The subject's DNS names, IP addresses and URIs (subjectAltName). */
  readonly names: readonly string[];
  readonly commonName?: string;
  readonly notBefore?: Date;
  readonly notAfter: Date;
}

export interface Authority {
  /** Its own certificate, as PEM. */
  readonly cert: string;
  /** Issues a certificate for servers and clients alike. */
  issue(asked: Issued): Promise<Pair>;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

cryptoProvider.set(webcrypto as Crypto);

export async function createAuthority(
  name: string,
  validity: Pick<Issued, "notBefore" | "notAfter">,
): Promise<Authority> {
  const keys = await newKeys();
  const own = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    ...validity,
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    cert: `${own.toString("pem")}\n`,
    async issue({ names, commonName = names[0], ...validity }) {
      const { publicKey, privateKey } = await newKeys();
      const issued = await X509CertificateGenerator.create({
        subject: `CN=${commonName}`,
        issuer: own.subject,
        ...validity,
        publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
          new SubjectAlternativeNameExtension(names.map(generalName)),
          await SubjectKeyIdentifierExtension.create(publicKey),
          await AuthorityKeyIdentifierExtension.create(own),
        ],
      });
      return { cert: `${issued.toString("pem")}\n`, key: await pemOf(privateKey) };
    },
  };
}

const newKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as Promise<CryptoKeyPair>;

function generalName(name: string): JsonGeneralName {
  if (isIP(name) !== 0) return { type: "ip", value: name };
  return { type: URL.canParse(name) ? "url" : "dns", value: name };
}

async function pemOf(key: CryptoKey): Promise<string> {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key)).toString("base64");
  return `-----BEGIN PRIVATE KEY-----\n${bytes.replace(/.{64}(?=.)/g, "$&\n")}\n-----END PRIVATE KEY-----\n`;
}
