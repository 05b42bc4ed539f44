import { X509Certificate } from "node:crypto";
import { chmod, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { waitForServer } from "@coxswain/apimachinery/controller/wait-for-server";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { parseBundle } from "@coxswain/apimachinery/serving/authentication/x509";
import { newCertificateRequestAside } from "@coxswain/apimachinery/serving/certificates-aside";
import type { selfSignedPair } from "@coxswain/apimachinery/serving/self-signed";
import type { CertificateMetrics } from "./certificate-metrics.ts";

interface CertificateOptions {
  nodeName: string;
  certDir: string;
  clock: Clock;
  log: Logger;
}

type Purpose = "client" | "server";

const purposes: Readonly<Record<Purpose, { signer: string; files: string; usage: string }>> = {
  client: { signer: "kubernetes.io/kube-apiserver-client-kubelet", files: "kubelet-client", usage: "client auth" },
  server: { signer: "kubernetes.io/kubelet-serving", files: "kubelet-server", usage: "server auth" },
};
/** Symbolic link to the newest certificate and key. */
const currentFile = (certDir: string, purpose: Purpose): string => join(certDir, `${purposes[purpose].files}-current.pem`);
const pollMs = 2_000;
const answerTimeoutMs = 15 * 60_000;
const retryMs = 30_000;
/** Source: bootstrap.go LoadClientCert, waitForServer */
const bootstrapWaitMs = 60_000;

interface BootstrapOptions extends CertificateOptions {
  /**
   * `--rotate-certificates`: wait for the API server without limit. Otherwise wait one minute; the following request fails
   * and ends the kubelet.
   */
  rotates: boolean;
}

/**
 * Creates the node's kubeconfig from a bootstrap kubeconfig: requests a client certificate for `system:node:<name>`, waits
 * until it is issued, stores it in `certDir` and writes `path`. Does nothing when `path` has a valid certificate.
 * @param bootstrapPath kubeconfig of a user that may create certificate signing requests
 * Source: pkg/kubelet/certificate/bootstrap/bootstrap.go
 */
export async function bootstrapKubeconfig(
  path: string,
  bootstrapPath: string,
  options: BootstrapOptions,
  signal: AbortSignal,
  connect: (config: ClientConfig) => Client = newClient,
): Promise<void> {
  const { clock, log, rotates } = options;
  if (await isUsable(path, clock.now())) return;
  log.info("Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file", { path });
  const config = await loadKubeconfig(bootstrapPath);
  const client = connect(config);
  try {
    const bound = rotates ? {} : { timeoutMs: bootstrapWaitMs };
    await waitForServer(client, { purpose: "a client certificate of this node", clock, log, signal, ...bound });
    const file = await obtainCertificate(client, { ...options, purpose: "client" }, signal);
    await makeFolder(dirname(path), 0o755);
    await writeWhole(path, toYaml(kubeconfigOf(config, file)));
  } finally {
    client.close();
  }
}

/** Whether a kubeconfig has a client certificate, and it and those that come with it are valid. Source: pkg/kubelet/certificate/bootstrap */
async function isUsable(path: string, now: number): Promise<boolean> {
  try {
    const { cert, certFile } = await loadKubeconfig(path);
    const pem = cert ?? (certFile === undefined ? "" : await readFile(certFile, "utf8"));
    return parseBundle(String(pem), path).every(({ validTo }) => Date.parse(validTo) >= now);
  } catch {
    return false;
  }
}

function kubeconfigOf(config: ClientConfig, certificateFile: string): unknown {
  const cluster: Record<string, unknown> = { server: config.host };
  if (config.ca !== undefined) cluster["certificate-authority-data"] = Buffer.from(config.ca).toString("base64");
  else if (config.caFile !== undefined) cluster["certificate-authority"] = resolve(config.caFile);
  if (config.insecure) cluster["insecure-skip-tls-verify"] = true;
  if (config.serverName !== undefined) cluster["tls-server-name"] = config.serverName;
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default-cluster", cluster }],
    contexts: [{ name: "default-context", context: { cluster: "default-cluster", namespace: "default", user: "default-auth" } }],
    "current-context": "default-context",
    preferences: {},
    users: [{ name: "default-auth", user: { "client-certificate": certificateFile, "client-key": certificateFile } }],
  };
}

interface RotationOptions extends CertificateOptions {
  purpose: Purpose;
  /** SANs of a serving certificate. */
  names?: () => { dnsNames: readonly string[]; ips: readonly string[] };
  onRotated: () => void;
  metrics?: CertificateMetrics | undefined;
  /** Default `Math.random`; overridden in tests. */
  random?: () => number;
}

/**
 * Renews a certificate before it expires, until the signal aborts. Clients use the new certificate for new connections,
 * servers when they notice the changed file.
 * Source: k8s.io/client-go util/certificate/certificate_manager.go
 */
export async function rotateCertificate(client: Client, options: RotationOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, certDir, purpose, metrics, random = Math.random } = options;
  // Once for each certificate: with another number at each check nearly all nodes would renew soon after 70 per cent.
  let portion = random();
  while (!signal.aborted) {
    let waitMs = retryMs;
    try {
      const { dueMs, from, to } = await dueIn(currentFile(certDir, purpose), clock.now(), portion);
      metrics?.current(to);
      if (dueMs <= 0) {
        await obtainCertificate(client, options, signal);
        metrics?.rotated(clock.now() - from);
        log.info("rotated a certificate", { purpose, certDir });
        options.onRotated();
        portion = random();
        continue;
      }
      waitMs = Math.min(dueMs, 3_600_000);
    } catch (err) {
      if (signal.aborted) return;
      metrics?.renewalFailed();
      log.error("cannot renew a certificate", err, { purpose });
    }
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
}

/** Validity in ms since the epoch, and ms until renewal is due: 0 for the self-signed placeholder. */
async function dueIn(path: string, now: number, portion: number): Promise<{ dueMs: number; from: number; to: number }> {
  const certificate = new X509Certificate(await readFile(path));
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const isPlaceholder = (await readlink(path)).endsWith(placeholder);
  return { dueMs: isPlaceholder ? 0 : rotationTime(from, to, portion) - now, from, to };
}

const placeholder = "-self-signed.pem";

/**
 * `--rotate-server-certificates`: the serving certificate file; self-signed until a certificate is issued.
 * @returns a link that always points to the newest file
 */
export async function servingCertificateFile(
  certDir: string,
  selfSigned: () => ReturnType<typeof selfSignedPair>,
): Promise<string> {
  const link = currentFile(certDir, "server");
  const isThere = await readFile(link).then(
    () => true,
    () => false,
  );
  if (isThere) return link;
  const pair = await selfSigned();
  const pieces =
    "cert" in pair
      ? [pair.cert, pair.key]
      : await Promise.all([pair.certFile, pair.keyFile].map((path) => readFile(path, "utf8")));
  const file = join(certDir, `${purposes.server.files}${placeholder}`);
  await writeWhole(file, pieces.join(""));
  await linkTo(file, link);
  return link;
}

/**
 * Pure: a time between 70 and 90 per cent of the validity, to spread the renewals of many nodes.
 * @param portion random number from 0 to 1
 */
export function rotationTime(from: number, to: number, portion: number): number {
  return Math.round(from + (to - from) * (0.7 + 0.2 * portion));
}

/** Requests a certificate and stores it. @returns the link to the newest certificate and key */
async function obtainCertificate(
  client: Client,
  options: CertificateOptions & Pick<RotationOptions, "purpose" | "names">,
  signal: AbortSignal,
): Promise<string> {
  const { nodeName, certDir, clock, purpose } = options;
  const { signer, files, usage } = purposes[purpose];
  const { csrPem, keyPem } = await newCertificateRequestAside({
    commonName: `system:node:${nodeName}`,
    organizations: ["system:nodes"],
    ...options.names?.(),
  });
  const request = await client.create<CertificateSigningRequest>(
    certificateSigningRequests,
    {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { generateName: "csr-" },
      spec: {
        request: Buffer.from(csrPem).toString("base64"),
        signerName: signer,
        usages: ["digital signature", "key encipherment", usage],
      },
    },
    { signal },
  );
  const pem = await waitForCertificate(client, request.metadata.name ?? "", options, signal);
  await makeFolder(certDir, 0o755);
  const stamp = new Date(clock.now()).toISOString().replace(/[T:]/g, "-").replace(/\..*$/, "");
  const file = join(certDir, `${files}-${stamp}.pem`);
  await writeWhole(file, `${pem.endsWith("\n") ? pem : `${pem}\n`}${keyPem}`);
  const link = currentFile(certDir, purpose);
  await linkTo(file, link);
  return link;
}

/** Replaces the link atomically. */
async function linkTo(file: string, link: string): Promise<void> {
  await rm(`${link}.new`, { force: true });
  await symlink(file, `${link}.new`);
  await rename(`${link}.new`, link);
}

async function waitForCertificate(
  client: Client,
  name: string,
  { clock, log }: CertificateOptions,
  signal: AbortSignal,
): Promise<string> {
  const deadline = clock.monotonic() + answerTimeoutMs;
  for (;;) {
    const status = await statusOfRequest(client, name, log, signal);
    const said = (type: string): string | undefined => {
      const found = (status?.conditions ?? []).find((condition) => condition.type === type);
      return found === undefined ? undefined : `${found.reason ?? ""}: ${found.message ?? ""}`;
    };
    for (const type of ["Denied", "Failed"]) {
      const why = said(type);
      if (why !== undefined) throw new Error(`certificate signing request ${name} is ${type.toLowerCase()}, reason: ${why}`);
    }
    if (said("Approved") !== undefined && status?.certificate) return Buffer.from(status.certificate, "base64").toString("utf8");
    if (clock.monotonic() > deadline) throw new Error(`certificate signing request ${name} was not signed in time`);
    await clock.sleep(pollMs, signal);
  }
}

/** @returns undefined when the API server is unavailable; the caller retries. @throws StatusError for other failures */
async function statusOfRequest(
  client: Client,
  name: string,
  log: Logger,
  signal: AbortSignal,
): Promise<CertificateSigningRequest["status"]> {
  try {
    return (await client.get<CertificateSigningRequest>(certificateSigningRequests, { name }, { signal })).status;
  } catch (err) {
    signal.throwIfAborted();
    if (err instanceof StatusError && err.code < 500 && err.code !== 429) throw err;
    log.warn("cannot create a certificate signing request, retrying", { name, err: messageOf(err) });
    return undefined;
  }
}

/** Writes a file atomically, readable by the owner only. */
async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeFile(temporary, text, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
