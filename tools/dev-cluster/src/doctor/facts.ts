/** Collects the doctor's facts from the API server with an administrator's kubeconfig, and from this machine. */
import { X509Certificate } from "node:crypto";
import { globSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Namespace, Node, Pod, ResourceQuota, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import * as refs from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { parse } from "yaml";

interface CertificateFact {
  /** Path of the file it is in. */
  readonly file: string;
  readonly subject: string;
  /** In ms since the epoch. */
  readonly begins: number;
  readonly ends: number;
}

interface DiskFact {
  readonly path: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** One sample of a metrics page. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A deprecated version of a resource that somebody requested since the start of the server. */
interface DeprecatedUse {
  /** `policy/v1beta1` */
  readonly version: string;
  readonly resource: string;
  readonly removedIn: string;
  /** Field managers that write objects in this version. */
  readonly users: readonly string[];
  /** No newer version is served: controllers that watch every resource request this one too. */
  readonly isOnlyVersion: boolean;
}

/** Facts that could not be read are absent, with the reason in `unread`. */
export interface DoctorFacts {
  /** In ms since the epoch. */
  readonly now: number;
  readonly certificates: readonly CertificateFact[];
  readonly disks: readonly DiskFact[];
  /** Why the API server does not answer. */
  readonly unreachable?: string;
  /** Failing checks and warnings of /readyz, as `name: message`. */
  readonly unready: readonly string[];
  /** By how much the server's clock is ahead of this machine's, in ms. */
  readonly clockMs?: number;
  readonly serverVersion?: string;
  readonly metrics: readonly Sample[];
  readonly nodes: readonly Node[];
  readonly leases: readonly Lease[];
  readonly apiServices: readonly APIService[];
  readonly webhooks: readonly (ValidatingWebhookConfiguration | MutatingWebhookConfiguration)[];
  readonly services: readonly Service[];
  readonly quotas: readonly ResourceQuota[];
  readonly failedPods: readonly Pod[];
  readonly namespaces: readonly Namespace[];
  readonly signingRequests: readonly CertificateSigningRequest[];
  readonly deprecated: readonly DeprecatedUse[];
  /** `nodes: forbidden …` */
  readonly unread: readonly string[];
}

export interface DoctorTarget {
  readonly client: Client | undefined;
  /** The reason when there is no client. */
  readonly noClient?: string;
  /** Folders with certificates (`*.crt`, `*.pem`) and kubeconfigs (`*.conf`), searched to a depth of three. */
  readonly folders: readonly string[];
  /** Folders whose disks must not fill up; those that do not exist are left out. */
  readonly data: readonly string[];
}

const answerWithinMs = 15_000;
const mostObjects = 2_000;

/**
 * Collects what the checks need, within 15 s. Never rejects: requests that fail are named in `unread`, a missing server in
 * `unreachable`.
 */
export async function gatherFacts({ client, noClient, folders, data }: DoctorTarget): Promise<DoctorFacts> {
  const local = { now: Date.now(), certificates: certificatesIn(folders), disks: disksOf(data) };
  const unread: string[] = [];
  const nothing = {
    ...{ unready: [], metrics: [], nodes: [], leases: [], apiServices: [], webhooks: [], services: [] },
    ...{ quotas: [], failedPods: [], namespaces: [], signingRequests: [], deprecated: [], unread },
  };
  if (client === undefined) return { ...local, ...nothing, unreachable: noClient ?? "there is no kubeconfig" };
  const signal = AbortSignal.timeout(answerWithinMs);
  const list = async <T extends object = KubeObject>(ref: ResourceRef, fieldSelector?: string): Promise<T[]> => {
    try {
      const options = { limit: mostObjects, signal, ...(fieldSelector !== undefined && { fieldSelector }) };
      return (await client.list<T>(ref, {}, options)).items;
    } catch (err) {
      unread.push(`${ref.resource}: ${messageOf(err)}`);
      return [];
    }
  };
  const text = async (path: string): Promise<string | undefined> => {
    try {
      const { status, body } = await client.raw("GET", path, { signal });
      if (status === 200 || path.startsWith("/readyz")) return body.toString();
      unread.push(`${path}: status ${status}`);
    } catch (err) {
      unread.push(`${path}: ${messageOf(err)}`);
    }
    return undefined;
  };
  let first: Awaited<ReturnType<Client["raw"]>>;
  const requested = Date.now();
  try {
    first = await client.raw("GET", "/version", { signal });
  } catch (err) {
    return { ...local, ...nothing, unreachable: messageOf(err) };
  }
  // The header has whole seconds.
  const date = Date.parse(String(first.headers["date"] ?? "")) + 500;
  const metrics = samplesOf((await text("/metrics")) ?? "");
  return {
    ...local,
    unread,
    ...(!Number.isNaN(date) && { clockMs: date - (requested + Date.now()) / 2 }),
    ...(first.status === 200 && { serverVersion: (JSON.parse(first.body.toString()) as { gitVersion: string }).gitVersion }), // cast: the API server's /version
    unready: unreadyOf((await text("/readyz?verbose")) ?? ""),
    metrics,
    nodes: await list<Node>(refs.nodes),
    leases: await list<Lease>(refs.leases),
    apiServices: await list<APIService>(refs.apiServices),
    webhooks: [
      ...(await list<ValidatingWebhookConfiguration>(refs.validatingWebhookConfigurations)),
      ...(await list<MutatingWebhookConfiguration>(refs.mutatingWebhookConfigurations)),
    ],
    services: await list<Service>(refs.services),
    quotas: await list<ResourceQuota>(refs.resourceQuotas),
    failedPods: await list<Pod>(refs.pods, "status.phase=Failed"),
    namespaces: await list<Namespace>(refs.namespaces),
    signingRequests: await list<CertificateSigningRequest>(refs.certificateSigningRequests),
    deprecated: await deprecatedUses(metrics, list, text),
  };
}

const messageOf = (err: unknown): string => {
  const message = String(err instanceof Error ? err.message : err);
  const cause = err instanceof Error ? err.cause : undefined;
  return cause instanceof Error && !message.includes(cause.message) ? `${message}: ${cause.message}` : message;
};

/** The lines of `/readyz?verbose` other than `[+]name ok`, as `name: message`. */
const unreadyOf = (page: string): string[] =>
  page.split("\n").flatMap((line) => {
    const match = /^\[([+-])\]([^ ]+) (.*)$/.exec(line);
    return match === null || (match[1] === "+" && match[3] === "ok") ? [] : [`${match[2]}: ${match[3]}`];
  });

/** Samples of a page in Prometheus' text format. */
export function samplesOf(page: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of page.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match === null) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name!] = value!;
    samples.push({ name: match[1]!, labels, value: Number(match[3]) });
  }
  return samples;
}

async function deprecatedUses(
  metrics: readonly Sample[],
  list: (ref: ResourceRef) => Promise<KubeObject[]>,
  text: (path: string) => Promise<string | undefined>,
): Promise<DeprecatedUse[]> {
  const uses: DeprecatedUse[] = [];
  for (const { name, labels, value } of metrics) {
    if (name !== "apiserver_requested_deprecated_apis" || value === 0) continue;
    const { group = "", version: short = "", resource = "", removed_release: removedIn = "" } = labels;
    const version = group === "" ? short : `${group}/${short}`;
    const ref = { group, version: short, resource, kind: "", namespaced: true };
    const managers = (await list(ref)).flatMap(({ metadata }) =>
      (metadata.managedFields ?? []).filter(({ apiVersion }) => apiVersion === version).map(({ manager }) => manager ?? ""),
    );
    const users = [...new Set(managers)].filter((manager) => manager !== "").toSorted();
    uses.push({ version, resource, removedIn, users, isOnlyVersion: await isOnlyVersion(ref, text) });
  }
  return uses;
}

/** Asks the discovery document of the group. */
async function isOnlyVersion(
  { group, version, resource }: ResourceRef,
  text: (path: string) => Promise<string | undefined>,
): Promise<boolean> {
  const { versions = [] } = JSON.parse((await text(`/apis/${group}`)) ?? "{}") as { versions?: { version: string }[] }; // cast: the API server's discovery
  for (const other of versions) {
    if (other.version === version) continue;
    const page = (await text(`/apis/${group}/${other.version}`)) ?? "{}";
    const { resources = [] } = JSON.parse(page) as { resources?: { name: string }[] }; // cast: the API server's discovery
    if (resources.some(({ name }) => name === resource)) return false;
  }
  return true;
}

function certificatesIn(folders: readonly string[]): CertificateFact[] {
  return folders.flatMap((folder) => {
    const files = globSync(["{*,*/*,*/*/*}.{crt,pem,conf}"], { cwd: folder }).toSorted();
    return files.flatMap((name) => {
      const file = join(folder, name);
      try {
        return readCertificates(file);
      } catch {
        return []; // neither a certificate nor a kubeconfig with one, or not ours to read
      }
    });
  });
}

function readCertificates(file: string): CertificateFact[] {
  const text = readFileSync(file, "utf8");
  const pem = file.endsWith(".conf") ? clientCertificateOf(text) : text;
  return (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((one) => {
    const { subject, validFrom, validTo } = new X509Certificate(one);
    return { file, subject: (subject ?? "").split("\n").join(", "), begins: Date.parse(validFrom), ends: Date.parse(validTo) };
  });
}

function clientCertificateOf(kubeconfig: string): string {
  const { users = [] } = parse(kubeconfig) as { users?: { user?: { "client-certificate-data"?: string } }[] }; // cast: a kubeconfig of this program
  return users.map(({ user }) => Buffer.from(user?.["client-certificate-data"] ?? "", "base64").toString()).join("\n");
}

function disksOf(paths: readonly string[]): DiskFact[] {
  return paths.flatMap((path) => {
    try {
      const { bavail, blocks, bsize } = statfsSync(path);
      return [{ path, freeBytes: bavail * bsize, totalBytes: blocks * bsize }];
    } catch {
      return [];
    }
  });
}
