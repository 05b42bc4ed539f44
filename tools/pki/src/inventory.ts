import type { X509Certificate } from "node:crypto";
import { globSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isSignedBy, parseCertificate, readIfThere } from "./files.ts";
import { readKubeconfig } from "./kubeconfig-file.ts";
import { type AuthorityFile, authorityFiles, certificates, kubeconfigNames, type PkiPlan } from "./plan.ts";

/** A certificate in the PKI folder or a kubeconfig. */
export interface Found {
  /** Name accepted by `renew`: `apiserver`, `etcd/server`, `admin.conf`. */
  readonly name: string;
  /** The file that contains it. */
  readonly path: string;
  /** For kubeconfigs: the user, if there are several, and the referenced certificate file. */
  readonly detail?: string;
  readonly certPem: string;
  /** undefined when the key is missing or unreadable. */
  readonly keyPem: string | undefined;
  readonly certificate: X509Certificate;
  /** The authority in this folder that signed it. */
  readonly ca: AuthorityFile | undefined;
  readonly isAuthority: boolean;
  /** Embedded in a kubeconfig. */
  readonly isEmbedded: boolean;
}

/** A file that should contain a certificate but does not. */
interface Unreadable {
  readonly name: string;
  readonly path: string;
  readonly reason: string;
}

export interface Inventory {
  readonly found: readonly Found[];
  readonly unreadable: readonly Unreadable[];
}

export const certFile = (plan: PkiPlan, file: string): string => join(plan.folder, "pki", `${file}.crt`);
export const keyFile = (plan: PkiPlan, file: string): string => join(plan.folder, "pki", `${file}.key`);
export const kubeconfigPath = (plan: PkiPlan, name: string): string => join(plan.folder, `${name}.conf`);

/** All certificates below `pki` and in kubeconfigs: those of the plan first, in its order. */
export function takeInventory(plan: PkiPlan): Inventory {
  const found: Found[] = [];
  const unreadable: Unreadable[] = [];
  const cas = readAuthorities(plan);
  const add = (entry: Omit<Found, "certificate" | "ca" | "isAuthority">): void => {
    const certificate = parseCertificate(entry.certPem);
    if (certificate === undefined) {
      unreadable.push({ name: entry.name, path: entry.path, reason: "it is no certificate in PEM form" });
      return;
    }
    const ca = authorityFiles.find((file) => cas[file] !== undefined && isSignedBy(certificate, cas[file]));
    found.push({ ...entry, certificate, ca, isAuthority: certificate.ca });
  };
  for (const file of filesOf(plan)) {
    const path = certFile(plan, file);
    const certPem = readIfThere(path);
    if (certPem === undefined) continue;
    add({ name: file, path, certPem, keyPem: readIfThere(keyFile(plan, file)), isEmbedded: false });
  }
  const caPem = readIfThere(certFile(plan, "ca"));
  for (const name of kubeconfigNames) {
    const path = kubeconfigPath(plan, name);
    const text = readIfThere(path);
    if (text === undefined) continue;
    const entry = { name: `${name}.conf`, path };
    try {
      const { users, authorities } = readKubeconfig(text, path);
      for (const { user, certPem, keyPem, file } of users) {
        const pem = certPem ?? (file === undefined ? undefined : readIfThere(file));
        const detail = file ?? (users.length > 1 ? `user ${user}` : undefined);
        if (pem === undefined) unreadable.push({ ...entry, reason: `${file}, which it names, is not there` });
        else add({ ...entry, ...(detail && { detail }), certPem: pem, keyPem, isEmbedded: certPem !== undefined });
      }
      for (const pem of authorities) {
        if (pem.trim() !== caPem?.trim())
          add({ ...entry, detail: "its certificate authority", certPem: pem, keyPem: undefined, isEmbedded: true });
      }
    } catch (err) {
      unreadable.push({ ...entry, reason: messageOf(err) });
    }
  }
  return { found, unreadable };
}

/** The readable authorities of the folder. */
export function readAuthorities(plan: PkiPlan): Partial<Record<AuthorityFile, X509Certificate>> {
  const entries = authorityFiles.map((file) => [file, parseCertificate(readIfThere(certFile(plan, file)) ?? "")]);
  return Object.fromEntries(entries.filter(([, certificate]) => certificate !== undefined));
}

/** Files of the plan, then other certificates in the folder. */
function filesOf(plan: PkiPlan): string[] {
  const others = globSync("**/*.crt", { cwd: join(plan.folder, "pki") }).map((path) => path.slice(0, -".crt".length));
  return [...new Set([...authorityFiles, ...certificates(plan).map(({ file }) => file), ...others.sort()])];
}

type Validity = "valid" | "ends soon" | "expired" | "not valid yet";

const dayMs = 86_400_000;

/** "ends soon": less than 30 days left, or a sixth of its lifetime when that is shorter. */
export function validityOf(certificate: X509Certificate, now: number): Validity {
  const from = certificate.validFromDate.getTime();
  const to = certificate.validToDate.getTime();
  if (now > to) return "expired";
  if (now < from) return "not valid yet";
  return to - now < Math.min(30 * dayMs, (to - from) / 6) ? "ends soon" : "valid";
}

/** `pki/apiserver.crt (CN=kube-apiserver) expired on 2026-01-02T03:04:05Z` for each expired certificate. */
export function expiredCertificates(plan: PkiPlan, now = Date.now()): string[] {
  return takeInventory(plan)
    .found.filter(({ certificate }) => validityOf(certificate, now) === "expired")
    .map((entry) => `${shown(entry)} expired on ${timeOf(entry.certificate.validToDate)}`);
}

/** A certificate in messages: `/etc/kubernetes/pki/ca.crt (CN=kubernetes)`. */
export const shown = ({ path, detail, certificate }: Found): string =>
  `${path} (${[detail, subjectText(certificate)].filter(Boolean).join(", ")})`;

/** `O=system:masters, CN=kubernetes-admin` */
export const subjectText = (certificate: X509Certificate): string => (certificate.subject ?? "").split("\n").join(", ");

/** `2026-01-02T03:04:05Z` */
export const timeOf = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, "Z");
