import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { freePort } from "@coxswain/apimachinery/testing/etcd";

interface TlsEtcd {
  readonly port: number;
  /** PEM, also as files: the CA, and a client certificate accepted by etcd. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Private key of the CA, to issue more certificates. */
  readonly caKey: string;
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string };
}

/**
 * An etcd for one test with TLS and client certificate authentication. It may not be listening yet on return.
 * @param ips IP addresses of its certificate, beside the name localhost
 */
export async function startTlsEtcd(t: { after(fn: () => void): void }, ips: readonly string[]): Promise<TlsEtcd> {
  const directory = mkdtempSync(join(tmpdir(), "cox-etcd-tls-"));
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const ca = await newCa({ commonName: "etcd-ca" });
  const server = await newCertificate({
    commonName: "etcd",
    dnsNames: ["localhost"],
    ips: [...ips],
    usages: ["server", "client"],
    ca,
  });
  const user = await newCertificate({ commonName: "apiserver", usages: ["client"], ca });
  const files = { ca: file("ca.crt", ca.certPem), cert: file("c.crt", user.certPem), key: file("c.key", user.keyPem) };
  const [port, peerPort] = await Promise.all([freePort(), freePort()]);
  const endpoint = `https://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  // The kernel kills etcd when this process dies, even by SIGKILL.
  const etcd = spawn(
    "setpriv",
    [
      ...["--pdeathsig", "KILL", "etcd"],
      ...["--data-dir", join(directory, "data"), "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint],
      ...["--listen-peer-urls", peer, "--log-level", "error", "--logger", "zap", "--unsafe-no-fsync"],
      ...["--cert-file", file("s.crt", server.certPem), "--key-file", file("s.key", server.keyPem)],
      ...["--initial-advertise-peer-urls", peer, "--initial-cluster", `default=${peer}`],
      ...["--trusted-ca-file", files.ca, "--client-cert-auth"],
    ],
    { stdio: "ignore" },
  );
  t.after(() => {
    etcd.once("exit", () => rmSync(directory, { recursive: true, force: true }));
    etcd.kill("SIGKILL");
  });
  return { port, ca: ca.certPem, caKey: ca.keyPem, cert: user.certPem, key: user.keyPem, files };
}
