import { newCa, newCertificate } from "../serving/certificates.ts";

export interface TestPair {
  readonly cert: string;
  readonly key: string;
  /** What a peer has to trust. */
  readonly ca: string;
}

/** A pair for `localhost`, `kubernetes` and 127.0.0.1, for either end, with an authority of its own. */
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
