import { createPrivateKey, createPublicKey, type X509Certificate } from "node:crypto";
import { basename } from "node:path";
import {
  alternativeNamesOf,
  type KeyPair,
  newCa,
  newCertificate,
  newServiceAccountKey,
  renewCertificate,
  subjectOf,
} from "@coxswain/apimachinery/serving/certificates";
import { isSignedBy, PkiError, parseCertificate, readIfThere, writeWhole } from "./files.ts";
import { certFile, keyFile, kubeconfigPath } from "./inventory.ts";
import { newKubeconfig, readKubeconfig } from "./kubeconfig-file.ts";
import {
  type AuthorityFile,
  authorities,
  authorityFiles,
  type CertificateSpec,
  certificates,
  type KubeconfigSpec,
  kubeconfigs,
  type PkiPlan,
  splitNames,
} from "./plan.ts";

export interface MakeOptions {
  /** Only says what it would write. */
  readonly dryRun?: boolean;
  /** Milliseconds since the epoch. */
  readonly now?: number;
}

/** A file that was written, or would be. `why` is given for one that was there before. */
export interface Made {
  readonly path: string;
  readonly why?: string;
}

/** One thing to write. What several depend on stands before them. */
type Step =
  | { readonly kind: "authority"; readonly file: AuthorityFile }
  | { readonly kind: "certificate"; readonly spec: CertificateSpec }
  | { readonly kind: "names"; readonly spec: CertificateSpec; readonly missing: readonly string[] }
  | { readonly kind: "kubeconfig"; readonly spec: KubeconfigSpec; readonly why?: string }
  | { readonly kind: "server"; readonly spec: KubeconfigSpec; readonly from: readonly string[] }
  | { readonly kind: "service account key" }
  | { readonly kind: "service account public key" };

/**
 * Writes what is missing of the PKI in kubeadm's file layout and a kubeconfig for each component, all or nothing. Files that exist stay
 * as they are, with two exceptions: a certificate of our own making gets the names that are asked for now besides those it has, and a
 * kubeconfig follows the API server's port where the plan says so. A key that has no certificate gets one.
 * @throws PkiError that names all that is missing and cannot be made; nothing is written then
 */
export async function makeMissing(plan: PkiPlan, options: MakeOptions = {}): Promise<Made[]> {
  const steps = decide(plan);
  const made: Made[] = [];
  for (const step of steps) made.push(...(await take(plan, step, options)));
  return made;
}

// ---- what is to be done -----------------------------------------------------------------------------------------------

interface Pair {
  readonly certPem: string | undefined;
  readonly keyPem: string | undefined;
}

function decide(plan: PkiPlan): Step[] {
  const problems: string[] = [];
  const steps: Step[] = [];
  const pairOf = (file: string): Pair => ({
    certPem: readIfThere(certFile(plan, file)),
    keyPem: readIfThere(keyFile(plan, file)),
  });
  for (const file of authorityFiles) {
    const pair = pairOf(file);
    const needed = filesThatNeed(plan, file);
    if (pair.certPem === undefined) {
      const orphans = filesSignedBy(plan, file);
      if (orphans.length === 0) steps.push({ kind: "authority", file });
      else
        problems.push(
          `${certFile(plan, file)} is missing, the authority of ${orphans.join(", ")}: put it back, or remove these to have all of them made anew`,
        );
    } else if (needed.length > 0) {
      const reason = whyItCannotSign(pair);
      if (reason !== undefined)
        problems.push(
          `${certFile(plan, file)} ${reason}, so these cannot be made: ${needed.join(", ")}; put ${basename(keyFile(plan, file))} beside it, or have the owner of the authority make them`,
        );
    }
  }
  for (const spec of certificates(plan)) {
    const pair = pairOf(spec.file);
    if (pair.certPem === undefined) steps.push({ kind: "certificate", spec });
    else if (pair.keyPem === undefined)
      problems.push(
        `${keyFile(plan, spec.file)} is missing, the key of ${certFile(plan, spec.file)}: put it back, or remove the certificate to have both made anew`,
      );
    else decideNames(plan, spec, pair.certPem, steps, problems);
  }
  decideServiceAccountKey(plan, steps, problems);
  for (const spec of kubeconfigs(plan)) decideKubeconfig(plan, spec, steps, problems);
  if (problems.length > 0) throw new PkiError(problems.join("\n"));
  return steps;
}

/** Files that an authority has to sign because they are missing. */
function filesThatNeed(plan: PkiPlan, ca: AuthorityFile): string[] {
  const missing = (path: string): boolean => readIfThere(path) === undefined;
  return [
    ...certificates(plan).flatMap((spec) => (spec.ca === ca ? certFile(plan, spec.file) : [])),
    ...(ca === "ca" ? kubeconfigs(plan).map(({ name }) => kubeconfigPath(plan, name)) : []),
  ].filter(missing);
}

/** Files that would not be trusted any more if another authority were made. */
function filesSignedBy(plan: PkiPlan, ca: AuthorityFile): string[] {
  return [
    ...certificates(plan).flatMap((spec) => (spec.ca === ca ? certFile(plan, spec.file) : [])),
    ...(ca === "ca" ? kubeconfigs(plan).map(({ name }) => kubeconfigPath(plan, name)) : []),
  ].filter((path) => readIfThere(path) !== undefined);
}

function whyItCannotSign({ certPem = "", keyPem }: Pair): string | undefined {
  if (keyPem === undefined) return "is there without its key (an external authority)";
  const certificate = parseCertificate(certPem);
  if (certificate === undefined) return "is no certificate in PEM form";
  return belongsTo(keyPem, certificate) ? undefined : "does not belong to the key beside it";
}

/** Whether it is the certificate's private key. */
export function belongsTo(keyPem: string, certificate: X509Certificate): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    return false;
  }
}

/** Names that are asked for are added to a certificate that we made, and are an error with one that we did not. */
function decideNames(plan: PkiPlan, spec: CertificateSpec, certPem: string, steps: Step[], problems: string[]): void {
  const certificate = parseCertificate(certPem);
  if (certificate === undefined) {
    problems.push(`${certFile(plan, spec.file)} is no certificate in PEM form: put one there, or remove it to have one made`);
    return;
  }
  const isOurs = isOfOurMaking(plan, spec, certificate, certPem);
  const wanted = splitNames(isOurs ? [...spec.names, ...spec.asked] : spec.asked);
  const present = new Set(alternativeNamesOf(certPem).dnsNames);
  const missing = [
    ...wanted.dnsNames.filter((name) => !present.has(name)),
    ...wanted.ips.filter((ip) => certificate.checkIP(ip) === undefined),
  ];
  if (missing.length === 0) return;
  if (isOurs) steps.push({ kind: "names", spec, missing });
  else {
    const why =
      readIfThere(keyFile(plan, spec.ca)) === undefined
        ? `, and the key of its authority, ${keyFile(plan, spec.ca)}, is not here`
        : " and was not made by this program: it stays as it is; remove it to have one made";
    problems.push(`${certFile(plan, spec.file)} lacks ${missing.join(", ")}${why}`);
  }
}

/**
 * By what it says: signed by this folder's authority, whose key is here too, for the same subject, with the names that all of ours
 * have, and a key of the kind that ours have (kubeadm's and cert-manager's are RSA).
 */
function isOfOurMaking(plan: PkiPlan, spec: CertificateSpec, certificate: X509Certificate, certPem: string): boolean {
  const caPem = readIfThere(certFile(plan, spec.ca));
  const ca = caPem === undefined ? undefined : parseCertificate(caPem);
  if (ca === undefined || readIfThere(keyFile(plan, spec.ca)) === undefined || !isSignedBy(certificate, ca)) return false;
  if (certificate.publicKey.asymmetricKeyDetails?.namedCurve !== "prime256v1") return false;
  const { commonName, organizations } = subjectOf(certificate);
  // The machine may have another name by now; what it was called stays among the names.
  const isNamedAfterNode = commonNameForms.get(spec.file)?.test(commonName) ?? commonName === spec.commonName;
  if (!isNamedAfterNode || organizations.join("\n") !== spec.organizations.join("\n")) return false;
  const { dnsNames } = alternativeNamesOf(certPem);
  const base = splitNames(spec.names.filter((name) => name !== plan.nodeName));
  return base.dnsNames.every((name) => dnsNames.includes(name)) && base.ips.every((ip) => certificate.checkIP(ip) !== undefined);
}

const commonNameForms: ReadonlyMap<string, RegExp> = new Map([
  ["etcd/server", /^[^:]+$/],
  ["etcd/peer", /^[^:]+$/],
  ["kubelet", /^system:node:/],
]);

function decideServiceAccountKey(plan: PkiPlan, steps: Step[], problems: string[]): void {
  const [key, pub] = [keyFile(plan, "sa"), publicKeyFile(plan)].map(readIfThere);
  if (key === undefined && pub === undefined) steps.push({ kind: "service account key" });
  else if (pub === undefined) steps.push({ kind: "service account public key" });
  else if (key === undefined)
    problems.push(
      `${keyFile(plan, "sa")} is missing, the key of ${publicKeyFile(plan)}: put it back, or remove that to have both made anew (tokens that were signed with the old key end then)`,
    );
}

/** Only in a folder of one cluster of ours does a kubeconfig follow the API server's port and the node's name. */
function decideKubeconfig(plan: PkiPlan, spec: KubeconfigSpec, steps: Step[], problems: string[]): void {
  const path = kubeconfigPath(plan, spec.name);
  const text = readIfThere(path);
  if (text === undefined) {
    steps.push({ kind: "kubeconfig", spec });
    return;
  }
  if (plan.isEarlierServer === undefined) return;
  try {
    const { servers, users } = readKubeconfig(text, path);
    const [{ certPem = "", keyPem = "" } = {}] = users;
    const node = /^system:node:(.*)$/.exec(commonNameOf(certPem) ?? "")?.[1];
    if (spec.name === "kubelet" && node !== undefined && node !== plan.nodeName) {
      const asWritten = { ...spec, commonName: `system:node:${node}`, server: servers[0] ?? "" };
      const caPem = readIfThere(certFile(plan, "ca")) ?? "";
      if (text === newKubeconfig(asWritten, caPem, { certPem, keyPem }))
        steps.push({ kind: "kubeconfig", spec, why: `it is for node ${plan.nodeName} now` });
      else problems.push(`${path} is for node ${node} and has been edited: remove it to have one for ${plan.nodeName} made`);
      return;
    }
    const from = servers.filter((url) => url !== spec.server && plan.isEarlierServer?.(url) === true);
    if (from.length > 0) steps.push({ kind: "server", spec, from });
  } catch (err) {
    problems.push(`${path}: ${(err as Error).message}; put a kubeconfig there, or remove it to have one made`);
  }
}

function commonNameOf(certPem: string): string | undefined {
  const certificate = parseCertificate(certPem);
  return certificate === undefined ? undefined : subjectOf(certificate).commonName;
}

// ---- doing it ---------------------------------------------------------------------------------------------------------

const publicKeyFile = (plan: PkiPlan): string => keyFile(plan, "sa").replace(/\.key$/, ".pub");

/** @returns the files that the step writes; all of them are readable at each moment, also when the machine stops in between */
async function take(plan: PkiPlan, step: Step, { dryRun = false, now = Date.now() }: MakeOptions): Promise<Made[]> {
  const write = (path: string, text: () => string, mode: number): Made => {
    if (!dryRun) writeWhole(path, text(), mode);
    return { path };
  };
  switch (step.kind) {
    case "authority":
      return makePair(plan, step.file, dryRun, (keyPem) => newCa({ commonName: authorities[step.file], keyPem, now }));
    case "certificate": {
      const { spec } = step;
      const { dnsNames, ips } = splitNames([...spec.names, ...spec.asked]);
      return makePair(plan, spec.file, dryRun, (keyPem) => {
        const { commonName, organizations, usages } = spec;
        return newCertificate({ commonName, organizations, usages, dnsNames, ips, keyPem, now, ca: authorityOf(plan, spec.ca) });
      });
    }
    case "names": {
      const { spec, missing } = step;
      const path = certFile(plan, spec.file);
      if (!dryRun) {
        const certPem = readIfThere(path) as string;
        writeWhole(path, await renewCertificate({ certPem, ca: authorityOf(plan, spec.ca), now, ...splitNames(missing) }), 0o644);
      }
      return [{ path, why: `added ${missing.join(", ")}` }];
    }
    case "kubeconfig": {
      const path = kubeconfigPath(plan, step.spec.name);
      if (!dryRun) {
        const ca = authorityOf(plan, "ca");
        const { commonName, organizations } = step.spec;
        const pair = await newCertificate({ commonName, organizations, usages: ["client"], ca, now });
        writeWhole(path, newKubeconfig(step.spec, ca.certPem, pair), 0o600);
      }
      return [{ path, ...(step.why !== undefined && { why: step.why }) }];
    }
    case "server": {
      const path = kubeconfigPath(plan, step.spec.name);
      if (!dryRun) {
        const text = readIfThere(path) as string;
        writeWhole(
          path,
          step.from.reduce((all, url) => replaceUrl(all, url, step.spec.server), text),
          0o600,
        );
      }
      return [{ path, why: `its server is ${step.spec.server} now` }];
    }
    case "service account key": {
      const pair = newServiceAccountKey();
      return [write(keyFile(plan, "sa"), () => pair.keyPem, 0o600), write(publicKeyFile(plan), () => pair.pubPem, 0o644)];
    }
    case "service account public key": {
      const text = (): string =>
        createPublicKey(createPrivateKey(readIfThere(keyFile(plan, "sa")) as string)).export({
          type: "spki",
          format: "pem",
        }) as string;
      return [write(publicKeyFile(plan), text, 0o644)];
    }
  }
}

/** The key first: one without a certificate gets it at the next call, while a certificate without its key would be lost. */
async function makePair(
  plan: PkiPlan,
  file: string,
  dryRun: boolean,
  make: (keyPem: string | undefined) => Promise<KeyPair>,
): Promise<Made[]> {
  const existing = readIfThere(keyFile(plan, file));
  const paths = [...(existing === undefined ? [keyFile(plan, file)] : []), certFile(plan, file)];
  if (!dryRun) {
    const pair = await make(existing);
    if (existing === undefined) writeWhole(keyFile(plan, file), pair.keyPem, 0o600);
    writeWhole(certFile(plan, file), pair.certPem, 0o644);
  }
  return paths.map((path) => ({ path }));
}

function authorityOf(plan: PkiPlan, file: AuthorityFile): KeyPair {
  return { certPem: readIfThere(certFile(plan, file)) as string, keyPem: readIfThere(keyFile(plan, file)) as string };
}

/** Not where the URL is the beginning of a longer one. */
const replaceUrl = (text: string, from: string, to: string): string =>
  text.replaceAll(new RegExp(`${from.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![0-9A-Za-z.-])`, "g"), to);
