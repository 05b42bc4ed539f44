import { X509Certificate } from "node:crypto";
import { rmSync } from "node:fs";
import { type KeyPair, newCa, renewCertificate } from "@coxswain/apimachinery/serving/certificates";
import { certificatesIn, isSignedBy, PkiError, parseCertificate, readIfThere, writeWhole } from "./files.ts";
import { certFile, keyFile, kubeconfigPath } from "./inventory.ts";
import { readKubeconfig, withAuthority, withCertificate } from "./kubeconfig-file.ts";
import { belongsTo, type Made } from "./make.ts";
import { type AuthorityFile, authorities, authorityFiles, certificates, kubeconfigNames, type PkiPlan } from "./plan.ts";

/**
 * Rotation of the certificate authorities. Each stage is done on all machines before the next one starts, so that machines
 * before and after a stage trust each other:
 * - `trust`: the new authorities are trusted in addition to the old ones, which still sign
 * - `sign`: the new authorities sign, and all certificates are reissued; the old ones are still trusted
 * - `finish`: only the new authorities are left
 */
export const rotationStages = ["trust", "sign", "finish"] as const;
export type RotationStage = (typeof rotationStages)[number];

/** Base name of the new authority's files until `finish`. All machines of a control plane need the same authority. */
export const nextFile = (file: AuthorityFile): string => `${file}-next`;

/** The signing certificate of `ca` alone, until `finish`: the controller manager does not accept a bundle for signing. */
export const signerFile = "ca-signer";

interface RotateOptions {
  readonly dryRun?: boolean;
  /** Current time in ms since the epoch. */
  readonly now?: number;
}

/** A file to write, or to remove when its content is undefined. */
interface Change {
  readonly path: string;
  readonly why: string;
  readonly content: string | undefined;
  readonly mode: number;
}

/**
 * Brings the files of a control plane machine to a stage. Idempotent: continues where an earlier attempt stopped.
 * @returns what was or would be written
 * @throws PkiError when an earlier stage was not done on this machine, or a file is unusable; nothing is written then
 */
export async function rotateAuthorities(plan: PkiPlan, stage: RotationStage, options: RotateOptions = {}): Promise<Made[]> {
  const { dryRun = false, now = Date.now() } = options;
  const made: Made[] = [];
  const take = (changes: readonly Change[]): void => {
    for (const { path, why, content, mode } of changes) {
      made.push({ path, why });
      if (dryRun) continue;
      if (content === undefined) rmSync(path, { force: true });
      else writeWhole(path, content, mode);
    }
  };
  const pairs = authorityFiles.map((file) => [file, pairAt(plan, file, stage)] as const);
  for (const [file, pair] of pairs) {
    if (pair === undefined) continue; // already finished
    const next = pair.next ?? (await newCa({ commonName: authorities[file], now }));
    take(changesOf(plan, file, stage, pair, next));
    if (stage === "sign") take(await leavesOf(plan, file, next, [...pair.trusted, next.certPem], now));
    if (file === "ca") take(trustChanges(plan, bundleOf(stage, pair.trusted, next.certPem)));
    if (stage === "finish")
      take(
        [
          certFile(plan, nextFile(file)),
          keyFile(plan, nextFile(file)),
          ...(file === "ca" ? [certFile(plan, signerFile)] : []),
        ].map((path) => ({ path, why: "removed", content: undefined, mode: 0 })),
      );
  }
  return made;
}

interface Authority {
  /** The certificates in the file, the signing one first. */
  readonly trusted: readonly string[];
  /** undefined: the new authority has to be created. */
  readonly next: KeyPair | undefined;
}

/** @returns undefined when no rotation of this authority is in progress. @throws PkiError */
function pairAt(plan: PkiPlan, file: AuthorityFile, stage: RotationStage): Authority | undefined {
  const path = certFile(plan, file);
  const trusted = certificatesIn(readIfThere(path) ?? "");
  if (trusted.length === 0) throw new PkiError(`${path} is missing or no certificate in PEM form: run coxswain certs`);
  const [certPem, keyPem] = [certFile(plan, nextFile(file)), keyFile(plan, nextFile(file))].map(readIfThere);
  if (certPem === undefined || keyPem === undefined) {
    if (stage === "finish" && certPem === undefined && trusted.length === 1) return undefined;
    // A key without a certificate was left by an interrupted attempt.
    if (stage === "trust" && certPem === undefined && trusted.length === 1) return { trusted, next: undefined };
    throw new PkiError(
      `${certFile(plan, nextFile(file))} and its key are not there: run the stage trust, or copy both from a machine that has done it`,
    );
  }
  const next = parseCertificate(certPem);
  if (next === undefined || !belongsTo(keyPem, next))
    throw new PkiError(`${certFile(plan, nextFile(file))} does not match the key in the same folder`);
  const at = trusted.findIndex((pem) => isSame(pem, certPem));
  if (stage !== "trust" && at < 0)
    throw new PkiError(`${path} does not trust the new authority yet: run the stage trust first, on all machines`);
  if (stage === "finish" && at !== 0)
    throw new PkiError(`${path} still signs with the old authority: run the stage sign first, on all machines`);
  return { trusted, next: { certPem: normal(certPem), keyPem } };
}

/** The certificates that a stage trusts, the signing one first. */
function bundleOf(stage: RotationStage, trusted: readonly string[], next: string): string {
  const others = trusted.filter((pem) => !isSame(pem, next));
  // Repeating `trust` after `sign` must not make the old authority sign again.
  const isSigning = stage !== "trust" || isSame(trusted[0] ?? "", next);
  if (stage === "finish") return next;
  return (isSigning ? [next, ...others] : [...others, next]).join("");
}

function changesOf(
  plan: PkiPlan,
  file: AuthorityFile,
  stage: RotationStage,
  { trusted, next: present }: Authority,
  next: KeyPair,
): Change[] {
  const changes: Change[] = [];
  // The key is written first: a key without its certificate can be completed, a certificate without its key is useless.
  if (present === undefined)
    changes.push(
      { path: keyFile(plan, nextFile(file)), why: "the new authority's", content: next.keyPem, mode: 0o600 },
      { path: certFile(plan, nextFile(file)), why: "the new authority", content: next.certPem, mode: 0o644 },
    );
  const bundle = bundleOf(stage, trusted, next.certPem);
  if (trusted.join("") !== bundle) changes.push({ path: certFile(plan, file), why: said[stage], content: bundle, mode: 0o644 });
  const signer = { path: certFile(plan, signerFile), content: certificatesIn(bundle)[0] };
  if (file === "ca" && stage !== "finish" && readIfThere(signer.path) !== signer.content)
    changes.push({ ...signer, why: "the authority that signs", mode: 0o644 });
  if (stage === "sign" && readIfThere(keyFile(plan, file)) !== next.keyPem)
    changes.push({ path: keyFile(plan, file), why: "of the new authority", content: next.keyPem, mode: 0o600 });
  return changes;
}

const said: Readonly<Record<RotationStage, string>> = {
  trust: "trusts the new authority, too",
  sign: "the new authority signs",
  finish: "trusts the new authority only",
};

/**
 * Reissues all certificates signed by an authority of the bundle other than the new one, with the new one. Keys and names are
 * kept.
 */
async function leavesOf(
  plan: PkiPlan,
  file: AuthorityFile,
  next: KeyPair,
  bundle: readonly string[],
  now: number,
): Promise<Change[]> {
  const changes: Change[] = [];
  const why = "signed by the new authority";
  const isDue = (pem: string): boolean => isSignedByOne(pem, bundle) && !isSignedByOne(pem, [next.certPem]);
  for (const { file: name, ca } of certificates(plan)) {
    const path = certFile(plan, name);
    const certPem = readIfThere(path);
    if (ca !== file || certPem === undefined || !isDue(certPem)) continue;
    changes.push({ path, why, content: await renewCertificate({ certPem, ca: next, now }), mode: 0o644 });
  }
  if (file !== "ca") return changes;
  for (const name of kubeconfigNames) {
    const path = kubeconfigPath(plan, name);
    const before = readIfThere(path);
    if (before === undefined) continue;
    let text = before;
    for (const { certPem } of readKubeconfig(before, path).users)
      if (certPem !== undefined && isDue(certPem)) {
        const renewed = withCertificate(text, certPem, await renewCertificate({ certPem, ca: next, now }));
        if (renewed === undefined) throw new PkiError(`${path} cannot be changed: its certificate is not on a single line`);
        text = renewed;
      }
    if (text !== before) changes.push({ path, why, content: text, mode: 0o600 });
  }
  return changes;
}

/**
 * Sets the trusted authorities in all kubeconfigs of a folder; on a node, too, which has no authority keys.
 * @returns what was or would be written
 */
export function trustAuthorities(plan: PkiPlan, bundle: string, { dryRun = false }: RotateOptions = {}): Made[] {
  const path = certFile(plan, "ca");
  const changes = [
    ...(readIfThere(path) === bundle ? [] : [{ path, why: "the cluster's authorities", content: bundle, mode: 0o644 }]),
    ...trustChanges(plan, bundle),
  ];
  if (!dryRun) for (const change of changes) writeWhole(change.path, change.content ?? "", change.mode);
  return changes.map(({ path: changed, why }) => ({ path: changed, why }));
}

function trustChanges(plan: PkiPlan, bundle: string): Change[] {
  return kubeconfigNames.flatMap((name): Change[] => {
    const path = kubeconfigPath(plan, name);
    const before = readIfThere(path);
    if (before === undefined) return [];
    let text = before;
    // A kubeconfig that trusts no authority of this cluster belongs to another cluster.
    for (const pem of readKubeconfig(before, path).authorities)
      if (pem !== bundle && certificatesIn(pem).some((one) => certificatesIn(bundle).some((other) => isSame(one, other)))) {
        const changed = withAuthority(text, pem, bundle);
        if (changed === undefined) throw new PkiError(`${path} cannot be changed: its authority is not on a single line`);
        text = changed;
      }
    return text === before ? [] : [{ path, why: "trusts the cluster's authorities", content: text, mode: 0o600 }];
  });
}

const normal = (pem: string): string => certificatesIn(pem)[0] ?? pem;
const isSame = (a: string, b: string): boolean => parseCertificate(a)?.fingerprint256 === parseCertificate(b)?.fingerprint256;

function isSignedByOne(pem: string, bundle: readonly string[]): boolean {
  const certificate = parseCertificate(pem);
  return certificate !== undefined && bundle.some((one) => isSignedBy(certificate, new X509Certificate(one)));
}
