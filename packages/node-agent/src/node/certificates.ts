import { X509Certificate } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";

const validDays = 365;

/**
 * The certificate of the kubelet API where none is given: a self-signed pair, made once and kept as `kubelet.crt` and
 * `kubelet.key`; made anew when it has expired.
 */
export async function servingCertificate(
  certDir: string,
  hostname: string,
  ips: readonly string[],
): Promise<{ certFile: string; keyFile: string }> {
  const certFile = join(certDir, "kubelet.crt");
  const keyFile = join(certDir, "kubelet.key");
  if (await isUsable(certFile, keyFile)) return { certFile, keyFile };
  await mkdir(certDir, { recursive: true, mode: 0o755 });
  const ca = await newCa({ commonName: `${hostname}-ca@${Math.trunc(Date.now() / 1000)}`, validDays });
  const pair = await newCertificate({
    commonName: `${hostname}@${Math.trunc(Date.now() / 1000)}`,
    organizations: [],
    dnsNames: [hostname],
    ips: [...new Set([...ips, "127.0.0.1"])],
    usages: ["server"],
    ca,
    validDays,
  });
  await writeFile(keyFile, pair.keyPem, { mode: 0o600 });
  await writeFile(certFile, `${pair.certPem}${ca.certPem}`, { mode: 0o644 });
  return { certFile, keyFile };
}

async function isUsable(certFile: string, keyFile: string): Promise<boolean> {
  try {
    const [certificate] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    return Date.parse(new X509Certificate(certificate).validTo) > Date.now();
  } catch {
    return false;
  }
}
