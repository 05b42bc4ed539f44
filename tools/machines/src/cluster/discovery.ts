/**
 * How a joining machine verifies the cluster: the ConfigMap cluster-info, signed with a bootstrap token. Source: kubeadm's
 * discovery by token
 */

import { createHmac, timingSafeEqual } from "node:crypto";
import { newClient } from "@coxswain/apimachinery/client/client";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { certificatesIn } from "@coxswain/pki/files";
import { Failure, UsageFailure } from "../failure.ts";
import { until } from "../host/until.ts";
import { authorityHash } from "./authority-hash.ts";
import { clusterInfoName } from "./bootstrap-objects.ts";

/** A verified cluster. */
export interface Discovered {
  /** `https://10.0.0.1:6443` */
  readonly server: string;
  readonly caPem: string;
}

interface TokenDiscovery {
  /** `10.0.0.1:6443` */
  readonly endpoint: string;
  readonly token: { readonly id: string; readonly secret: string };
  /** `sha256:…`; empty only when the user requested that. */
  readonly hashes: readonly string[];
  readonly timeoutMs: number;
}

/**
 * Requests cluster-info from the API server, first without verifying its certificate. Accepts the response if it is signed with
 * the token and its CA has one of the hashes; then requests it again over a connection verified with this CA.
 * @throws Failure
 */
export async function discover({ endpoint, token, hashes, timeoutMs }: TokenDiscovery): Promise<Discovered> {
  const host = `https://${endpoint}`;
  // The controller manager adds the signature to cluster-info after the token was created.
  const first = await until(() => signedInfo({ host, insecure: true }, token), {
    timeoutMs,
    everyMs: 500,
    isFinal: (err) => err instanceof Failure,
    what: `${host} to show cluster-info signed with token ${token.id}`,
    remedy: "check the address, and on a machine of the control plane: coxswain token list",
  });
  const found = read(first, host);
  checkAuthority(found.caPem, hashes);
  await until(() => signedInfo({ host, ca: found.caPem }, token), {
    timeoutMs,
    what: `${host} to show a certificate of the cluster's authority`,
    remedy: "its certificate must contain the address (apiServer.certSANs)",
  });
  return found;
}

/** From a kubeconfig file: `discovery.file`. @throws Failure */
export function discoveredIn(text: string, path: string): Discovered {
  try {
    return read(text, path);
  } catch (err) {
    throw new UsageFailure(`${path}: ${messageOf(err)}`);
  }
}

/** Pure. @throws Failure when no certificate of the bundle has one of the hashes */
export function checkAuthority(caPem: string, hashes: readonly string[]): void {
  for (const hash of hashes)
    if (!/^sha256:[0-9a-f]{64}$/i.test(hash)) throw new UsageFailure(`${hash} is not sha256: and 64 hexadecimal digits`);
  if (hashes.length === 0) return;
  const present = certificatesIn(caPem).map(authorityHash);
  if (!present.some((hash) => hashes.some((wanted) => wanted.toLowerCase() === hash)))
    throw new Failure(
      `the cluster's authority has the hash ${present.join(", ")}, which is not among the given ones: this is another cluster, or someone intercepts the connection`,
    );
}

async function signedInfo(
  access: { host: string; insecure?: boolean; ca?: string },
  { id, secret }: { readonly id: string; readonly secret: string },
): Promise<string | undefined> {
  const client = newClient({ ...access, qps: -1 });
  try {
    const answer = await client.raw("GET", `/api/v1/namespaces/kube-public/configmaps/${clusterInfoName}`, {
      signal: AbortSignal.timeout(10_000),
      headers: { accept: "application/json" },
    });
    if (answer.status !== 200) throw new Error(`the response for cluster-info is ${answer.status}`);
    const { data = {} } = JSON.parse(answer.body.toString()) as ConfigMap; // cast: a ConfigMap of the API server
    const info = data["kubeconfig"] ?? "";
    const signature = data[`jws-kubeconfig-${id}`];
    if (signature === undefined)
      throw new Error(
        `cluster-info has no signature of token ${id}: it has expired or does not exist; for a new one: coxswain token create --print-join-command`,
      );
    if (!isSignedWith(info, signature, secret)) throw new Failure(`cluster-info is not signed with the secret of token ${id}`);
    return info;
  } finally {
    client.close();
  }
}

/** Pure. @param signature a JWS with HS256 and detached content: `<header>..<signature>` */
export function isSignedWith(content: string, signature: string, secret: string): boolean {
  const [header = "", middle, mark = ""] = signature.split(".");
  if (middle !== "" || algorithmOf(header) !== "HS256") return false;
  const signed = `${header}.${Buffer.from(content).toString("base64url")}`;
  const wanted = createHmac("sha256", secret).update(signed).digest();
  const given = Buffer.from(mark, "base64url");
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function algorithmOf(header: string): unknown {
  try {
    return (JSON.parse(Buffer.from(header, "base64url").toString()) as { alg?: unknown }).alg; // cast: the field is unknown until it is compared
  } catch {
    return undefined;
  }
}

interface ClusterEntry {
  readonly clusters?: readonly { readonly cluster?: Record<string, unknown> }[];
  readonly "current-context"?: string;
}

/** The cluster of a kubeconfig with or without a context. */
function read(text: string, place: string): Discovered {
  const parsed = parseYaml(text) as ClusterEntry | null; // cast: every field is optional
  if (parsed?.["current-context"]) {
    const { host, ca } = parseKubeconfig(text);
    if (ca !== undefined) return { server: host, caPem: ca };
  }
  const [{ cluster = {} } = {}] = parsed?.clusters ?? [];
  const { server, "certificate-authority-data": ca } = cluster;
  if (typeof server !== "string" || typeof ca !== "string")
    throw new Failure(`${place}: it has no cluster with server and certificate-authority-data`);
  return { server, caPem: Buffer.from(ca, "base64").toString() };
}
