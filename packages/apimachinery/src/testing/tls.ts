import { newCa, newCertificate } from "../serving/certificates.ts";

export interface TestPair {
  readonly cert: string;
  readonly key: string;
  /** The CA certificate that peers have to trust, PEM. */
  readonly ca: string;
}

/** A certificate for `localhost`, `kubernetes` and 127.0.0.1, for servers and clients, signed by a new CA. */
export async function testPair(commonName = "localhost"): Promise<TestPair> {
  const ca = await newCa({ commonName: `${commonName}-ca` });
  const { certPem, keyPem } = await newCertificate({
    commonName,
    dnsNames: ["localhost", "kubernetes"],
    ips: ["127.0.0.1"],
    usages: ["server", "client"],
    ca,
  });
  return { cert: certPem, key: keyPem, ca: ca.certPem };
}
