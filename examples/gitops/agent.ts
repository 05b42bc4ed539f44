import { createHash } from "node:crypto";
import type { Client, ResourceRef, Unstructured } from "@coxswain/testing";
import { configMaps, cronJobs, deployments } from "@coxswain/testing/resources";

/** What a revision of a repository holds: objects, by the name of their file. */
export type Revision = Readonly<Record<string, Unstructured>>;

const managed: readonly ResourceRef[] = [configMaps, cronJobs, deployments];
const label = "gitops.example.com/managed";
const fieldManager = "gitops";

export interface Outcome {
  readonly revision: string;
  /** By file. */
  readonly failed: Readonly<Record<string, string>>;
  readonly pruned: readonly string[];
}

/**
 * Makes the cluster what the repository says: applies each object, takes back what others changed of it, and removes what an
 * earlier revision had. An object that is refused does not keep the others from being applied, and nothing is removed then.
 */
export async function sync(client: Client, revision: Revision): Promise<Outcome> {
  const failed: Record<string, string> = {};
  for (const [file, object] of Object.entries(revision)) {
    const { kind, metadata } = object as { kind: string; metadata: { name: string; labels?: Record<string, string> } };
    const body = { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [label]: "true" } } };
    try {
      const ref = managed.find((one) => one.kind === kind);
      if (ref === undefined) throw new Error(`${kind} is not managed`);
      await client.patch(
        ref,
        { namespace: "default", name: metadata.name },
        { type: "apply", body },
        { fieldManager, force: true },
      );
    } catch (err) {
      failed[file] = (err as Error).message;
    }
  }
  const pruned = Object.keys(failed).length > 0 ? [] : await prune(client, Object.values(revision));
  return { revision: createHash("sha256").update(JSON.stringify(revision)).digest("hex").slice(0, 12), failed, pruned };
}

async function prune(client: Client, wanted: readonly Unstructured[]): Promise<string[]> {
  const keyOf = (kind: string | undefined, name: string | undefined): string => `${kind}/${name}`;
  const keep = new Set(wanted.map((object) => keyOf(object.kind, object.metadata?.name)));
  const pruned: string[] = [];
  for (const ref of managed) {
    const { items } = await client.list(ref, { namespace: "default" }, { labelSelector: `${label}=true` });
    for (const { metadata } of items) {
      const key = keyOf(ref.kind, metadata?.name);
      if (keep.has(key)) continue;
      await client.delete(ref, { namespace: "default", name: metadata?.name ?? "" }, { propagationPolicy: "Background" });
      pruned.push(key);
    }
  }
  return pruned;
}
