import { renewCertificate } from "@coxswain/apimachinery/serving/certificates";
import { PkiError, readIfThere, writeWhole } from "./files.ts";
import { certFile, type Found, keyFile, readAuthorities, shown, takeInventory, timeOf, validityOf } from "./inventory.ts";
import { withCertificate } from "./kubeconfig-file.ts";
import { belongsTo } from "./make.ts";
import type { PkiPlan } from "./plan.ts";

interface RenewOptions {
  /** Names as listed by `check`, with or without `.crt` or `.conf`; empty: all except authorities. */
  readonly names?: readonly string[];
  /** Only expired and expiring certificates. */
  readonly onlyExpiring?: boolean;
  readonly dryRun?: boolean;
  /** Current time in ms since the epoch. */
  readonly now?: number;
}

export interface Renewed {
  /** Renewed certificates and kubeconfigs. */
  readonly paths: readonly string[];
  /** Files not renewed, with the reason. */
  readonly skipped: readonly string[];
}

/**
 * Reissues certificates with the same key, names, subject and authority, so that certificate and key match at every moment. Each
 * file is replaced atomically.
 * @throws PkiError listing all requested or expired certificates that cannot be renewed; nothing is written then
 */
export async function renew(plan: PkiPlan, options: RenewOptions = {}): Promise<Renewed> {
  const { names = [], onlyExpiring = false, dryRun = false, now = Date.now() } = options;
  const { found, unreadable } = takeInventory(plan);
  const wanted = names.map(canonical);
  const known = [...found, ...unreadable].map(({ name }) => name);
  const unknown = names.filter((_, i) => !known.some((name) => canonical(name) === wanted[i]));
  if (unknown.length > 0)
    throw new PkiError(
      `there is no certificate ${unknown.join(", ")} in ${plan.folder}; known are ${[...new Set(known)].join(", ")}`,
    );

  const problems: string[] = [];
  const skipped: string[] = [];
  const due: Found[] = [];
  for (const entry of found) {
    const isNamed = wanted.includes(canonical(entry.name));
    if (wanted.length > 0 ? !isNamed : entry.isAuthority && validityOf(entry.certificate, now) !== "expired") continue;
    const validity = validityOf(entry.certificate, now);
    if (onlyExpiring && validity !== "ends soon" && validity !== "expired") continue;
    const reason = whyNot(plan, entry, now);
    if (reason === undefined) due.push(entry);
    else {
      const ended = validity === "expired" ? `expired on ${timeOf(entry.certificate.validToDate)} and ` : "";
      (isNamed || ended ? problems : skipped).push(`${shown(entry)} ${ended}cannot be renewed here: ${reason}`);
    }
  }
  for (const { name, path, reason } of unreadable)
    (wanted.includes(canonical(name)) ? problems : skipped).push(`${path} cannot be renewed: ${reason}`);
  if (problems.length > 0) throw new PkiError(problems.join("\n"));

  if (!dryRun) for (const entry of due) await renewOne(plan, entry, now);
  const paths = [...new Set(due.map(({ path }) => path))];
  return { paths, skipped };
}

/** Renews expired and expiring certificates: less than 30 days left, or a sixth of the lifetime when that is shorter. */
export async function renewExpiring(plan: PkiPlan, now = Date.now()): Promise<Renewed> {
  return renew(plan, { onlyExpiring: true, now });
}

/** Normalizes names: `apiserver.crt` to `apiserver`, `etcd/server` to kubeadm's `etcd-server`. */
const canonical = (name: string): string => name.replace(/\.(?:crt|conf)$/, "").replaceAll("/", "-");

function whyNot(plan: PkiPlan, entry: Found, now: number): string | undefined {
  const { certificate, ca, isAuthority, isEmbedded, keyPem, detail } = entry;
  if (isAuthority) return "it is an authority: for a new one remove it and all that it signed";
  if (!isEmbedded && detail !== undefined) return "it is in a file that its owner renews (a kubelet's own certificate)";
  if (ca === undefined)
    return `it was signed by ${certificate.issuer.split("\n").join(", ")}, which is no authority of this folder`;
  if (keyPem === undefined) return "its key is missing";
  if (!belongsTo(keyPem, certificate)) return "it does not belong to the key beside it";
  const end = readAuthorities(plan)[ca]?.validToDate;
  if (end !== undefined && end.getTime() <= now) return `its authority, ${certFile(plan, ca)}, expired on ${timeOf(end)}`;
  const caKey = readIfThere(keyFile(plan, ca));
  return caKey === undefined ? `${keyFile(plan, ca)}, the key of its authority, is missing` : undefined;
}

async function renewOne(plan: PkiPlan, { path, certPem, ca, isEmbedded }: Found, now: number): Promise<void> {
  if (ca === undefined) return;
  const authority = { certPem: readIfThere(certFile(plan, ca)) ?? "", keyPem: readIfThere(keyFile(plan, ca)) ?? "" };
  // The chain after the first certificate is kept.
  const end = "-----END CERTIFICATE-----\n";
  const chain = certPem.includes(end) ? certPem.slice(certPem.indexOf(end) + end.length) : "";
  const renewed = (await renewCertificate({ certPem, ca: authority, now })) + chain;
  if (!isEmbedded) return writeWhole(path, renewed, 0o644);
  // Read again, because another user in the same kubeconfig may have been renewed by a previous step.
  const text = withCertificate(readIfThere(path) ?? "", certPem, renewed);
  if (text === undefined) throw new PkiError(`${path} cannot be renewed: its certificate is not on a single line`);
  writeWhole(path, text, 0o600);
}
